import { MARK, type LanesData } from "./lanesData";
import type { Packed } from "./packing";

/** Bars with marks, in the order of the packed columns, and where those of each row begin. */
export interface Marked {
  at: Int32Array;
  rowFrom: Int32Array;
}

/** Finds the bars with one of these marks. */
export function marked(data: LanesData, packed: Packed, ...marks: number[]): Marked {
  const at: number[] = [];
  const rowFrom = new Int32Array(packed.rows + 1);
  for (let row = 0; row < packed.rows; row++) {
    for (let i = packed.rowFrom[row]!; i < packed.rowFrom[row + 1]!; i++) {
      if (marks.includes(data.mark[packed.bar[i]!]!)) at.push(i);
    }
    rowFrom[row + 1] = at.length;
  }
  return { at: Int32Array.from(at), rowFrom };
}

/** The first mark of a row, from `from` on, whose bar ends after a time. */
export function markAfter(marks: Marked, packed: Packed, row: number, time: number, from = marks.rowFrom[row]!): number {
  let low = from;
  let high = marks.rowFrom[row + 1]!;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (packed.end[marks.at[middle]!]! > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Draws the sign of a mark around the middle of a square of this size. */
export function drawMark(context: CanvasRenderingContext2D, mark: number, x: number, y: number, size: number, ink: string, ground: string) {
  context.save();
  context.translate(x, y);
  context.scale(size / 12, size / 12);
  context.lineJoin = "round";
  context.lineCap = "round";
  const path = new Path2D();
  if (mark === MARK.failed) {
    path.moveTo(-3.6, -3.6);
    path.lineTo(3.6, 3.6);
    path.moveTo(3.6, -3.6);
    path.lineTo(-3.6, 3.6);
    stroke(context, path, ground, 4.6);
    stroke(context, path, ink, 2.2);
  } else if (mark === MARK.lost) {
    // A bolt.
    path.moveTo(1.8, -5.6);
    path.lineTo(-3.8, 0.9);
    path.lineTo(-0.5, 0.9);
    path.lineTo(-1.8, 5.6);
    path.lineTo(3.8, -1.3);
    path.lineTo(0.5, -1.3);
    path.closePath();
    stroke(context, path, ground, 2.4);
    context.fillStyle = ink;
    context.fill(path);
  } else if (mark === MARK.retried) {
    // An arrow that goes round.
    path.arc(0, 0, 3.4, -0.4, 4.4);
    path.moveTo(3.4, -4.4);
    path.lineTo(3.2, -1.2);
    path.lineTo(0.2, -2.2);
    stroke(context, path, ground, 3.6);
    stroke(context, path, ink, 1.5);
  }
  context.restore();
}

function stroke(context: CanvasRenderingContext2D, path: Path2D, colour: string, width: number) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.stroke(path);
}

/** Signs that are drawn once and copied from then on. */
export class Stamps {
  private readonly made = new Map<string, HTMLCanvasElement>();

  stamp(context: CanvasRenderingContext2D, mark: number, x: number, y: number, size: number, ratio: number, ink: string, ground: string) {
    const name = `${mark} ${size} ${ratio} ${ground} ${ink}`;
    if (this.made.size > 40) this.made.clear();
    let stamp = this.made.get(name);
    if (!stamp) {
      stamp = document.createElement("canvas");
      stamp.width = stamp.height = Math.ceil((size + 4) * ratio);
      const own = stamp.getContext("2d")!;
      own.scale(ratio, ratio);
      drawMark(own, mark, (size + 4) / 2, (size + 4) / 2, size, ink, ground);
      this.made.set(name, stamp);
    }
    const side = stamp.width / ratio;
    context.drawImage(stamp, x - side / 2, y - side / 2, side, side);
  }
}
