import type { Pixels, Rgb } from "./pixels";
import { mixed, pixel } from "./pixels";

/** So many lines in a pixel look the same as more. */
const MOST = 24;

/**
 * Thousands of lines, counted pixel by pixel: the more of them go through one, the stronger its colour. This shows where many go
 * along, and takes a fraction of the time that a canvas needs for so many lines.
 */
export class Density {
  private counts = new Uint8Array(0);
  private width = 0;
  private height = 0;
  /** The part of a line that is left, from 0 to 1. */
  private from = 0;
  private to = 1;

  reset(width: number, height: number) {
    this.width = width;
    this.height = height;
    if (this.counts.length === width * height) this.counts.fill(0);
    else this.counts = new Uint8Array(width * height);
  }

  /** A straight line. What is outside of the picture is cut off before it costs anything. */
  line(x0: number, y0: number, x1: number, y1: number) {
    const dx = x1 - x0;
    const dy = y1 - y0;
    this.from = 0;
    this.to = 1;
    const seen = this.cut(-dx, x0) && this.cut(dx, this.width - 1 - x0) && this.cut(-dy, y0) && this.cut(dy, this.height - 1 - y0);
    if (!seen) return;
    const { from, to } = this;
    this.inside(x0 + dx * from, y0 + dy * from, dx * (to - from), dy * (to - from));
  }

  /** Cuts the line off at one side of the picture (Liang and Barsky). Returns whether something is left. */
  private cut(way: number, room: number): boolean {
    if (way === 0) return room >= 0;
    const at = room / way;
    if (way < 0) this.from = Math.max(this.from, at);
    else this.to = Math.min(this.to, at);
    return this.from <= this.to;
  }

  private inside(x: number, y: number, dx: number, dy: number) {
    const { counts, width } = this;
    const steps = Math.max(Math.ceil(Math.max(Math.abs(dx), Math.abs(dy))), 1);
    const stepX = dx / steps;
    const stepY = dy / steps;
    for (let i = 0; i < steps; i++) {
      const at = (y | 0) * width + (x | 0);
      if (counts[at]! < MOST) counts[at]! += 1;
      x += stepX;
      y += stepY;
    }
  }

  /** Draws what was counted above a ground. `weight` is what one line adds. */
  show(pixels: Pixels, ground: Rgb, ink: Rgb, weight: number) {
    const shades = Uint32Array.from({ length: MOST + 1 }, (_, n) => {
      const [r, g, b] = mixed(ground, ink, 1 - (1 - weight) ** n);
      return pixel(r, g, b);
    });
    const { counts } = this;
    const { data } = pixels;
    for (let i = 0; i < counts.length; i++) data[i] = shades[counts[i]!]!;
  }
}
