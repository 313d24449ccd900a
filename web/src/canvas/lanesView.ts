import type { Packed } from "./packing";
import { clamp, clamped, firstAbove, shifted, zoomed, type Span } from "./span";

/** The shortest piece of time that fills the picture, in milliseconds. */
const SHORTEST = 5;
const HIGHEST_ROW = 48;
/** Rows that fit into the picture are not higher than this. */
const FIT_ROW = 22;
/** Rows are never flatter than this; what does not fit is scrolled to. */
const FLATTEST_ROW = 1;

/** What part of the lanes is looked at: a span of time, how high a row is, and how far down. */
export class LanesView {
  bounds: Span = { from: 0, to: 1 };
  span: Span = { from: 0, to: 1 };
  /** The whole of the time is shown, also when more of it comes. */
  fitted = true;
  /** The end is shown, also when it moves on. */
  following = true;
  rowHeight = FIT_ROW;
  scroll = 0;
  /** Rows are as high as fits. */
  private rowsFitted = true;
  private rows = 1;
  private lanes = 1;
  private height = 1;

  /** There are other times to be shown. */
  setBounds(bounds: Span, live: boolean) {
    const advance = bounds.to - this.bounds.to;
    this.bounds = bounds.to > bounds.from ? bounds : { from: bounds.from, to: bounds.from + 1 };
    if (this.fitted) this.span = { ...this.bounds };
    else if (live && this.following) this.span = this.kept(shifted(this.span, advance));
  }

  /** There are other rows, or another height to show them in. */
  setRows(packed: Packed, height: number) {
    this.rows = Math.max(packed.rows, 1);
    this.lanes = Math.max(packed.laneRow.length - 1, 1);
    this.height = Math.max(height, 1);
    if (this.rowsFitted) this.rowHeight = this.fittingHeight();
    this.scrollTo(this.scroll);
  }

  /** What so many rows fill at most if all of them are to be seen. */
  static heightOf(packed: Packed): number {
    return packed.rows * FIT_ROW + (packed.laneRow.length - 1) * 4;
  }

  /** Between lanes, so that one sees where they end. */
  get gap(): number {
    return this.rowHeight >= 8 ? 4 : this.rowHeight >= 4 ? 2 : this.rowHeight >= 2 ? 1 : 0;
  }

  private fittingHeight(): number {
    for (const gap of [4, 2, 1, 0]) {
      const height = (this.height - gap * this.lanes) / this.rows;
      const wanted = gap === 4 ? 8 : gap === 2 ? 4 : gap === 1 ? 2 : 0;
      if (height >= wanted) return clamp(height, FLATTEST_ROW, FIT_ROW);
    }
    return FLATTEST_ROW;
  }

  /** The upper side of a row, from the upper side of what is shown. */
  top(packed: Packed, row: number): number {
    return row * this.rowHeight + (packed.rowLane[row] ?? this.lanes) * this.gap - this.scroll;
  }

  /** The row at a height, or -1 between lanes and below them. */
  rowAt(packed: Packed, y: number): number {
    const lane = this.laneAt(packed, y);
    if (lane < 0) return -1;
    const row = Math.floor((y + this.scroll - lane * this.gap) / this.rowHeight);
    return row >= packed.laneRow[lane]! && row < packed.laneRow[lane + 1]! ? row : -1;
  }

  /** The lane at a height, or -1 below the last. */
  laneAt(packed: Packed, y: number): number {
    const lanes = packed.laneRow.length - 1;
    let low = 0;
    let high = lanes;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const bottom = packed.laneRow[middle + 1]! * this.rowHeight + (middle + 1) * this.gap - this.scroll;
      if (bottom > y) high = middle;
      else low = middle + 1;
    }
    return low < lanes ? low : -1;
  }

  private kept(span: Span): Span {
    return clamped(span, this.bounds, Math.min(SHORTEST, this.bounds.to - this.bounds.from));
  }

  /** The user looks elsewhere. Who sees everything, or the end, goes on to. */
  private look(span: Span) {
    this.span = this.kept(span);
    const tolerance = (this.span.to - this.span.from) * 1e-6;
    const atEnd = this.span.to >= this.bounds.to - tolerance;
    this.fitted = atEnd && this.span.from <= this.bounds.from + tolerance;
    this.following = atEnd;
  }

  pan(millis: number) {
    this.look(shifted(this.span, millis));
  }

  zoom(factor: number, around: number) {
    this.look(zoomed(this.span, factor, around));
  }

  show(span: Span) {
    this.look(span);
  }

  fit() {
    this.rowsFitted = true;
    this.rowHeight = this.fittingHeight();
    this.scrollTo(0);
    this.look(this.bounds);
  }

  /** Goes to the end, as close as the user has been. */
  follow() {
    this.look(shifted(this.span, this.bounds.to - this.span.to));
  }

  private get whole(): number {
    return this.rows * this.rowHeight + this.lanes * this.gap;
  }

  scrollTo(top: number) {
    this.scroll = clamp(top, 0, Math.max(this.whole - this.height, 0));
  }

  /** Makes rows higher, and keeps what is at `y` where it is. */
  zoomRows(factor: number, y: number) {
    const share = (this.scroll + y) / this.whole;
    const fitting = this.fittingHeight();
    this.rowHeight = clamp(this.rowHeight * factor, Math.min(fitting, FIT_ROW), HIGHEST_ROW);
    this.rowsFitted = this.rowHeight <= fitting;
    this.scrollTo(share * this.whole - y);
  }

  /** Moves as little as shows this bar. */
  reveal(packed: Packed, bar: number) {
    const at = packed.place[bar]!;
    const start = packed.start[at]!;
    const end = packed.end[at]!;
    const length = this.span.to - this.span.from;
    if (end > this.span.to || start < this.span.from) {
      const middle = Math.min((start + end) / 2, start + length / 2);
      this.look({ from: middle - length / 2, to: middle + length / 2 });
    }
    const top = this.top(packed, packed.row[bar]!);
    if (top < 0) this.scrollTo(this.scroll + top - this.rowHeight);
    else if (top + this.rowHeight > this.height) this.scrollTo(this.scroll + top + 2 * this.rowHeight - this.height);
  }
}

/** The bar of a row at a time, or the nearest one that is at most `slack` away; -1 if there is none. */
export function barAt(packed: Packed, row: number, time: number, slack: number): number {
  const from = packed.rowFrom[row]!;
  const to = packed.rowFrom[row + 1]!;
  const after = firstAbove(packed.end, time, from, to);
  let best = -1;
  let distance = slack;
  for (const i of [after - 1, after]) {
    if (i < from || i >= to) continue;
    const away = Math.max(packed.start[i]! - time, time - packed.end[i]!, 0);
    if (away <= distance) {
      distance = away;
      best = i;
    }
  }
  return best < 0 ? -1 : packed.bar[best]!;
}

/** The bar before or after this one in its lane, by when they start; -1 if there is none. */
export function neighbour(packed: Packed, bar: number, direction: 1 | -1): number {
  const lane = packed.rowLane[packed.row[bar]!]!;
  const own = packed.start[packed.place[bar]!]!;
  // Bars of other rows that start at the same time come in the order of their rows.
  const ownRow = packed.row[bar]!;
  let best = -1;
  let bestStart = direction * Infinity;
  const rows = packed.laneRow[lane + 1]! - packed.laneRow[lane]!;
  for (let n = 0; n < rows; n++) {
    const row = direction > 0 ? packed.laneRow[lane]! + n : packed.laneRow[lane + 1]! - 1 - n;
    const i = beside(packed, row, own, direction, direction > 0 ? row > ownRow : row < ownRow, bar);
    if (i >= 0 && direction * packed.start[i]! < direction * bestStart) {
      best = packed.bar[i]!;
      bestStart = packed.start[i]!;
    }
  }
  return best;
}

function beside(packed: Packed, row: number, time: number, direction: 1 | -1, withEqual: boolean, bar: number): number {
  const from = packed.rowFrom[row]!;
  const to = packed.rowFrom[row + 1]!;
  if (row === packed.row[bar]) {
    const at = packed.place[bar]! + direction;
    return at >= from && at < to ? at : -1;
  }
  const above = firstAbove(packed.start, time, from, to);
  if (direction > 0) {
    let at = above;
    while (withEqual && at > from && packed.start[at - 1] === time) at -= 1;
    return at < to ? at : -1;
  }
  let at = above - 1;
  while (!withEqual && at >= from && packed.start[at] === time) at -= 1;
  return at >= from ? at : -1;
}
