import { wheelFactor, type Gestures, type Point } from "./gestures";
import { frameOf, partAt, perPixel, stripTimeAt, timeAt, type Frame, type Part } from "./lanesFrame";
import type { LanesScene } from "./lanesScene";
import { barAt, neighbour } from "./lanesView";
import type { Surface } from "./surface";

/** Bars can be missed by so many pixels. */
const SLACK = 3;
/** The ends of the window in the strip can be missed by more, they are thin. */
const HANDLE = 6;

/** Whom to tell what the user does with lanes. */
export interface LanesListener {
  /** Another bar was chosen, or none. */
  select(bar: number): void;
  /** More is to be known about a bar. */
  open(bar: number): void;
  /** The pointer is above a bar, or above none (-1). */
  point(bar: number, at: Point): void;
  /** Something else is looked at. */
  look(): void;
}

/** What is held while dragging. */
type Held = Part | "window" | "windowFrom" | "windowTo";

/** Turns gestures and keys into changes of what is looked at. */
export class LanesHands implements Gestures {
  private held: Held = "bars";

  constructor(
    private readonly surface: Surface,
    private readonly scene: LanesScene,
    private readonly listener: LanesListener,
  ) {}

  private get frame(): Frame {
    return frameOf(this.scene, this.surface.width, this.surface.height);
  }

  private changed() {
    this.surface.invalidate();
    this.listener.look();
  }

  grab(at: Point) {
    const frame = this.frame;
    this.held = partAt(frame, at);
    if (this.held !== "strip") return;
    const { span, bounds } = this.scene.view;
    const scale = frame.width / (bounds.to - bounds.from);
    const from = frame.left + (span.from - bounds.from) * scale;
    const to = frame.left + (span.to - bounds.from) * scale;
    if (Math.abs(at.x - from) <= HANDLE) this.held = "windowFrom";
    else if (Math.abs(at.x - to) <= HANDLE) this.held = "windowTo";
    else if (at.x > from && at.x < to) this.held = "window";
  }

  drag(by: Point, to: Point) {
    const { view } = this.scene;
    const frame = this.frame;
    const time = stripTimeAt(this.scene, frame, to.x);
    const stripStep = (view.bounds.to - view.bounds.from) / frame.width;
    switch (this.held) {
      case "window":
        view.pan(by.x * stripStep);
        break;
      case "windowFrom":
        view.show({ from: Math.min(time, view.span.to - stripStep), to: view.span.to });
        break;
      case "windowTo":
        view.show({ from: view.span.from, to: Math.max(time, view.span.from + stripStep) });
        break;
      case "strip":
        this.centre(time);
        break;
      case "names":
        view.scrollTo(view.scroll - by.y);
        break;
      default:
        view.pan(-by.x * perPixel(this.scene, frame));
        view.scrollTo(view.scroll - by.y);
    }
    this.changed();
  }

  private centre(time: number) {
    const { view } = this.scene;
    const half = (view.span.to - view.span.from) / 2;
    view.show({ from: time - half, to: time + half });
  }

  click(at: Point) {
    const frame = this.frame;
    if (partAt(frame, at) === "strip") {
      this.centre(stripTimeAt(this.scene, frame, at.x));
      this.changed();
      return;
    }
    const bar = this.barUnder(at);
    this.listener.select(bar);
    if (bar >= 0) this.listener.open(bar);
  }

  hover(at: Point | null) {
    const bar = at ? this.barUnder(at) : -1;
    if (bar !== this.scene.hovered) {
      this.scene.hovered = bar;
      this.surface.invalidate();
    }
    this.listener.point(bar, at ?? { x: 0, y: 0 });
  }

  private barUnder(at: Point): number {
    const frame = this.frame;
    if (partAt(frame, at) !== "bars") return -1;
    const row = this.scene.view.rowAt(this.scene.packed, at.y - frame.top);
    if (row < 0) return -1;
    return barAt(this.scene.packed, row, timeAt(this.scene, frame, at.x), SLACK * perPixel(this.scene, frame));
  }

  wheel(by: Point, at: Point, event: WheelEvent) {
    const { view } = this.scene;
    const frame = this.frame;
    if (partAt(frame, at) === "names") view.scrollTo(view.scroll + by.y);
    else if (event.shiftKey) view.zoomRows(1 / wheelFactor(by.y || by.x), at.y - frame.top);
    else if (Math.abs(by.x) > Math.abs(by.y)) view.pan(by.x * perPixel(this.scene, frame));
    else view.zoom(wheelFactor(event.ctrlKey ? by.y * 4 : by.y), timeAt(this.scene, frame, at.x));
    this.changed();
  }

  pinch(factor: number, by: Point, at: Point) {
    const { view } = this.scene;
    view.zoom(1 / factor, timeAt(this.scene, this.frame, at.x));
    view.pan(-by.x * perPixel(this.scene, this.frame));
    view.scrollTo(view.scroll - by.y);
    this.changed();
  }

  key(event: KeyboardEvent): boolean {
    if (event.ctrlKey || event.metaKey) return false;
    const known = event.altKey || event.key === "[" || event.key === "]" ? this.moveSelection(event.key) : this.moveView(event);
    if (known) this.changed();
    return known;
  }

  private moveView(event: KeyboardEvent): boolean {
    const { view } = this.scene;
    const length = view.span.to - view.span.from;
    const middle = (view.span.from + view.span.to) / 2;
    const page = this.frame.height;
    switch (event.key) {
      case "ArrowLeft":
        view.pan(-length / 10);
        return true;
      case "ArrowRight":
        view.pan(length / 10);
        return true;
      case "ArrowUp":
        if (event.shiftKey) view.zoomRows(1.25, page / 2);
        else view.scrollTo(view.scroll - page / 8);
        return true;
      case "ArrowDown":
        if (event.shiftKey) view.zoomRows(0.8, page / 2);
        else view.scrollTo(view.scroll + page / 8);
        return true;
      case "PageUp":
        view.scrollTo(view.scroll - page * 0.9);
        return true;
      case "PageDown":
        view.scrollTo(view.scroll + page * 0.9);
        return true;
      case "+":
      case "=":
        view.zoom(1 / 1.5, this.selectedTime() ?? middle);
        return true;
      case "-":
        view.zoom(1.5, this.selectedTime() ?? middle);
        return true;
      case "0":
        view.fit();
        return true;
      case "Home":
        view.show({ from: view.bounds.from, to: view.bounds.from + length });
        return true;
      case "End":
        view.follow();
        return true;
      case "Escape":
        if (this.scene.selected < 0) return false;
        this.listener.select(-1);
        return true;
      case "Enter":
        if (this.scene.selected < 0) return false;
        this.listener.open(this.scene.selected);
        return true;
      default:
        return false;
    }
  }

  /** The middle of the selected bar if it is in sight: who has selected something looks at it. */
  private selectedTime(): number | null {
    const { packed, selected, view } = this.scene;
    if (selected < 0 || selected >= packed.place.length) return null;
    const at = packed.place[selected]!;
    const time = (packed.start[at]! + packed.end[at]!) / 2;
    return time >= view.span.from && time <= view.span.to ? time : null;
  }

  /** To the next or previous bar of the lane, or to the row above or below. */
  private moveSelection(key: string): boolean {
    const { packed, selected, view } = this.scene;
    if (packed.bar.length === 0) return false;
    let bar = -1;
    if (selected < 0 || selected >= packed.place.length) bar = this.firstInSight();
    else if (key === "[" || key === "ArrowLeft") bar = neighbour(packed, selected, -1);
    else if (key === "]" || key === "ArrowRight") bar = neighbour(packed, selected, 1);
    else if (key === "ArrowUp") bar = this.across(-1);
    else if (key === "ArrowDown") bar = this.across(1);
    else return false;
    if (bar >= 0) {
      this.listener.select(bar);
      view.reveal(packed, bar);
    }
    return true;
  }

  private firstInSight(): number {
    const { packed, view } = this.scene;
    const lane = Math.max(view.laneAt(packed, 0), 0);
    for (let row = packed.laneRow[lane]!; row < packed.rows; row++) {
      const bar = barAt(packed, row, view.span.from, Infinity);
      if (bar >= 0) return bar;
    }
    return -1;
  }

  private across(direction: 1 | -1): number {
    const { packed, selected } = this.scene;
    const at = packed.place[selected]!;
    const middle = (packed.start[at]! + packed.end[at]!) / 2;
    for (let row = packed.row[selected]! + direction; row >= 0 && row < packed.rows; row += direction) {
      const bar = barAt(packed, row, middle, Infinity);
      if (bar >= 0) return bar;
    }
    return -1;
  }
}
