export interface Point {
  x: number;
  y: number;
}

/** What a picture does about what people do with it. Points are in CSS pixels of the canvas. */
export interface Gestures {
  /** Something is held at a point; what it is decides what dragging does. */
  grab(at: Point): void;
  drag(by: Point, to: Point): void;
  drop?(): void;
  click(at: Point): void;
  /** The pointer is here, or has left. */
  hover(at: Point | null): void;
  /** A wheel was turned: by how many pixels it would scroll. */
  wheel(by: Point, at: Point, event: WheelEvent): void;
  /** Two fingers: how much further apart, how far they moved, and their middle. */
  pinch(factor: number, by: Point, at: Point): void;
  /** Returns whether the key means something here. */
  key(event: KeyboardEvent): boolean;
}

/** Pointers that move less than this have clicked. */
const STILL = 4;
const LINE = 32;

/** Listens to mouse, pen, fingers, wheel and keys. Returns how to stop. */
export function listen(canvas: HTMLElement, gestures: Gestures): () => void {
  const pointers = new Map<number, Point>();
  let began: Point | null = null;
  let moved = false;

  const at = (event: MouseEvent): Point => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  const down = (event: PointerEvent) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    const point = at(event);
    pointers.set(event.pointerId, point);
    moved = pointers.size > 1;
    began = point;
    if (pointers.size === 1) gestures.grab(point);
    gestures.hover(null);
  };

  const move = (event: PointerEvent) => {
    const point = at(event);
    const before = pointers.get(event.pointerId);
    if (!before) {
      gestures.hover(point);
      return;
    }
    if (!moved && began && Math.hypot(point.x - began.x, point.y - began.y) < STILL) return;
    moved = true;
    pointers.set(event.pointerId, point);
    const by = { x: point.x - before.x, y: point.y - before.y };
    if (pointers.size === 1) {
      gestures.drag(by, point);
    } else if (pointers.size === 2) {
      const other = [...pointers].find(([id]) => id !== event.pointerId)![1];
      const apart = (a: Point) => Math.max(Math.hypot(a.x - other.x, a.y - other.y), 1);
      const middle = { x: (point.x + other.x) / 2, y: (point.y + other.y) / 2 };
      gestures.pinch(apart(point) / apart(before), { x: by.x / 2, y: by.y / 2 }, middle);
    }
  };

  const up = (event: PointerEvent) => {
    if (!pointers.delete(event.pointerId)) return;
    if (pointers.size > 0) return;
    gestures.drop?.();
    if (!moved && event.type === "pointerup") gestures.click(at(event));
    began = null;
  };

  const leave = () => {
    if (pointers.size === 0) gestures.hover(null);
  };

  const wheel = (event: WheelEvent) => {
    event.preventDefault();
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? 1 : LINE;
    gestures.wheel({ x: event.deltaX * unit, y: event.deltaY * unit }, at(event), event);
  };

  const key = (event: KeyboardEvent) => {
    if (gestures.key(event)) event.preventDefault();
  };

  canvas.addEventListener("pointerdown", down);
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", leave);
  // Not passive: a wheel that zooms must not scroll the page as well.
  canvas.addEventListener("wheel", wheel, { passive: false });
  canvas.addEventListener("keydown", key);
  return () => {
    canvas.removeEventListener("pointerdown", down);
    canvas.removeEventListener("pointermove", move);
    canvas.removeEventListener("pointerup", up);
    canvas.removeEventListener("pointercancel", up);
    canvas.removeEventListener("pointerleave", leave);
    canvas.removeEventListener("wheel", wheel);
    canvas.removeEventListener("keydown", key);
  };
}

/** How much a turn of the wheel zooms: more than 1 shows more. */
export function wheelFactor(pixels: number): number {
  return Math.exp(Math.max(-120, Math.min(120, pixels)) * 0.0022);
}
