import type { Point } from "./gestures";
import { clamp } from "./span";

/** Something flat with a width and a height. */
export interface Size {
  width: number;
  height: number;
}

/** Around what is fitted into the window, in pixels. */
const MARGIN = 12;

/** What part of a plane is looked at, and how closely. */
export class Plane {
  /** The point in the upper left corner. */
  x = 0;
  y = 0;
  /** Pixels per unit. */
  scale = 1;
  /** All of it is shown, also when the window changes its size. */
  fitted = true;
  content: Size = { width: 1, height: 1 };
  private window: Size = { width: 1, height: 1 };

  /** Nothing is shown larger than this, and small things are not blown up to fill the window. */
  constructor(
    private readonly closest = 3,
    private readonly fitClosest = 1.2,
  ) {}

  resize(window: Size) {
    if (window.width === this.window.width && window.height === this.window.height) return;
    const middle = this.at(this.middle);
    this.window = window;
    if (this.fitted) this.fit();
    else this.centre(middle);
  }

  setContent(content: Size) {
    this.content = { width: Math.max(content.width, 1), height: Math.max(content.height, 1) };
    if (this.fitted) this.fit();
    else this.keep();
  }

  private get fitScale(): number {
    const { width, height } = this.window;
    const room = Math.max(1 - (2 * MARGIN) / Math.min(width, height), 0.5);
    return Math.min((width * room) / this.content.width, (height * room) / this.content.height, this.fitClosest);
  }

  fit() {
    this.scale = this.fitScale;
    this.centre({ x: this.content.width / 2, y: this.content.height / 2 });
    this.fitted = true;
  }

  pan(by: Point) {
    this.x -= by.x / this.scale;
    this.y -= by.y / this.scale;
    this.fitted = false;
    this.keep();
  }

  /** A factor above 1 shows things larger. What is at `at`, in pixels, stays there. */
  zoom(factor: number, at: Point) {
    const before = this.at(at);
    this.scale = clamp(this.scale * factor, Math.min(this.fitScale * 0.7, 1), this.closest);
    this.x = before.x - at.x / this.scale;
    this.y = before.y - at.y / this.scale;
    this.fitted = false;
    this.keep();
  }

  /** Brings a point into the middle, at least so close. */
  centre(point: Point, scale = this.scale) {
    this.scale = Math.max(this.scale, Math.min(scale, this.closest));
    this.x = point.x - this.window.width / 2 / this.scale;
    this.y = point.y - this.window.height / 2 / this.scale;
    this.fitted = false;
    this.keep();
  }

  /** Moves as little as shows a rectangle, and some room around it if something has to move. */
  reveal(x: number, y: number, width: number, height: number) {
    const seenX = this.window.width / this.scale;
    const seenY = this.window.height / this.scale;
    const isSeen = x >= this.x && y >= this.y && x + width <= this.x + seenX && y + height <= this.y + seenY;
    if (isSeen) return;
    const room = Math.min(40, this.window.width / 8) / this.scale;
    this.x = Math.min(Math.max(this.x, x + width + room - seenX), x - room);
    this.y = Math.min(Math.max(this.y, y + height + room - seenY), y - room);
    this.fitted = false;
    this.keep();
  }

  /** The point under a pixel. */
  at(pixel: Point): Point {
    return { x: this.x + pixel.x / this.scale, y: this.y + pixel.y / this.scale };
  }

  get middle(): Point {
    return { x: this.window.width / 2, y: this.window.height / 2 };
  }

  /** Something is always in sight: the middle of the window is never outside of the content. */
  private keep() {
    const halfX = this.window.width / 2 / this.scale;
    const halfY = this.window.height / 2 / this.scale;
    this.x = clamp(this.x, -halfX, this.content.width - halfX);
    this.y = clamp(this.y, -halfY, this.content.height - halfY);
  }
}
