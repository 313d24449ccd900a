import type { Packed } from "./packing";
import { firstAbove, gallop } from "./span";
import type { Shades } from "./shades";

/** Bars that are wider than this have a gap after them. */
const GAPPED = 4;
/** What is there can be seen, however short it is. */
const LEAST = 0.4;
const SPECK = 0.01;

/**
 * Draws a row of bars into a line of pixels. A pixel gets the mean of the bars in it, each as much as it covers. The work grows
 * with the number of pixels, not of bars.
 */
export class RowRaster {
  private red = new Float32Array(0);
  private green = new Float32Array(0);
  private blue = new Float32Array(0);
  private alpha = new Float32Array(0);
  /** At least so much of a pixel is to be covered. */
  private least = new Float32Array(0);
  line = new Uint32Array(0);

  resize(width: number) {
    if (this.line.length === width) return;
    this.red = new Float32Array(width);
    this.green = new Float32Array(width);
    this.blue = new Float32Array(width);
    this.alpha = new Float32Array(width);
    this.least = new Float32Array(width);
    this.line = new Uint32Array(width);
  }

  /** `line` is what was in `ground` with the bars of a row above it. Returns whether there are any. */
  draw(packed: Packed, shades: Shades, row: number, from: number, perPixel: number, ground: Uint32Array): boolean {
    const width = this.line.length;
    const last = packed.rowFrom[row + 1]!;
    let i = firstAbove(packed.end, from, packed.rowFrom[row]!, last);
    const to = from + width * perPixel;
    if (i >= last || packed.start[i]! >= to) return false;
    this.red.fill(0);
    this.green.fill(0);
    this.blue.fill(0);
    this.alpha.fill(0);
    this.least.fill(0);
    const { start, end } = packed;
    const scale = 1 / perPixel;
    while (i < last && start[i]! < to) {
      const left = (start[i]! - from) * scale;
      if ((end[i]! - start[i]!) * scale >= 0.5) {
        this.one(shades, i, left, (end[i]! - from) * scale);
        i += 1;
        continue;
      }
      // All bars that start in this pixel at once; only the last of them can reach into the next.
      const column = Math.max(Math.floor(left), 0);
      const beyond = gallop(start, from + (column + 1) * perPixel - perPixel * 1e-9, i, last);
      const final = Math.max(beyond - 1, i);
      if (final > i) this.many(shades, i, final, column, scale);
      this.one(shades, final, (start[final]! - from) * scale, (end[final]! - from) * scale);
      i = final + 1;
    }
    this.finish(ground);
    return true;
  }

  private one(shades: Shades, i: number, left: number, right: number) {
    const width = this.line.length;
    const seen = shades.alpha[i]!;
    const r = shades.colour[3 * i]! * seen;
    const g = shades.colour[3 * i + 1]! * seen;
    const b = shades.colour[3 * i + 2]! * seen;
    const stop = Math.min(right - left > GAPPED ? right - 1 : right, width);
    const first = Math.max(Math.floor(left), 0);
    if (first >= width) return;
    for (let x = first; x < stop || x === first; x++) {
      const part = Math.max(Math.min(stop, x + 1) - Math.max(left, x), SPECK);
      this.red[x]! += r * part;
      this.green[x]! += g * part;
      this.blue[x]! += b * part;
      this.alpha[x]! += seen * part;
      if (seen > this.least[x]!) this.least[x] = seen;
    }
  }

  private many(shades: Shades, from: number, to: number, x: number, scale: number) {
    if (x >= this.line.length) return;
    const weight = (shades.weight[to]! - shades.weight[from]!) * scale;
    this.red[x]! += (shades.red[to]! - shades.red[from]!) * scale;
    this.green[x]! += (shades.green[to]! - shades.green[from]!) * scale;
    this.blue[x]! += (shades.blue[to]! - shades.blue[from]!) * scale;
    this.alpha[x]! += weight;
    if (shades.alpha[from]! > this.least[x]!) this.least[x] = shades.alpha[from]!;
  }

  private finish(ground: Uint32Array) {
    const { red, green, blue, alpha, least, line } = this;
    for (let x = 0; x < line.length; x++) {
      const sum = alpha[x]!;
      const below = ground[x]!;
      if (sum <= 0) {
        line[x] = below;
        continue;
      }
      const shown = Math.min(Math.max(sum, LEAST * least[x]!), 1);
      const share = shown / sum;
      const rest = 1 - shown;
      const r = red[x]! * share + (below & 255) * rest;
      const g = green[x]! * share + ((below >>> 8) & 255) * rest;
      const b = blue[x]! * share + ((below >>> 16) & 255) * rest;
      line[x] = 0xff000000 | (b << 16) | (g << 8) | r;
    }
  }
}
