import type { Point } from "./gestures";

/** A few words beside the pointer. Changed by hand: it moves with every move of the pointer. */
export class Tooltip {
  constructor(private readonly element: HTMLElement) {}

  show(text: string | null, at: Point) {
    const { element } = this;
    element.hidden = text === null;
    if (text === null) return;
    if (element.textContent !== text) element.textContent = text;
    const room = element.parentElement!;
    const left = at.x + 14 + element.offsetWidth > room.clientWidth ? at.x - 10 - element.offsetWidth : at.x + 14;
    const top = at.y + 16 + element.offsetHeight > room.clientHeight ? at.y - 8 - element.offsetHeight : at.y + 16;
    element.style.transform = `translate(${Math.max(left, 0)}px, ${Math.max(top, 0)}px)`;
  }
}
