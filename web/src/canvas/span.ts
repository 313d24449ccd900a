/** A piece of an axis. The maths of looking at it is here, apart from everything that draws. */
export interface Span {
  from: number;
  to: number;
}

/** The same length, further on. */
export function shifted(span: Span, by: number): Span {
  return { from: span.from + by, to: span.to + by };
}

/** Shows less (a factor below 1) or more, while what is at `around` stays where it is. */
export function zoomed(span: Span, factor: number, around: number): Span {
  return { from: around - (around - span.from) * factor, to: around + (span.to - around) * factor };
}

/** Not longer than the bounds nor shorter than `least`, and within the bounds. */
export function clamped(span: Span, bounds: Span, least: number): Span {
  const whole = Math.max(bounds.to - bounds.from, least);
  const length = Math.min(Math.max(span.to - span.from, least), whole);
  // A length that had to change keeps its middle.
  const middle = (span.from + span.to) / 2;
  const kept = length === span.to - span.from ? span.from : middle - length / 2;
  const from = Math.min(Math.max(kept, bounds.from), bounds.from + whole - length);
  return { from, to: from + length };
}

export function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most);
}

/** The first position in `[from, to)` whose value is larger than `limit`, in sorted values. */
export function firstAbove(values: Float64Array, limit: number, from: number, to: number): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle]! > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** As `firstAbove`, but quick where the answer is near the beginning. */
export function gallop(values: Float64Array, limit: number, from: number, to: number): number {
  let step = 1;
  let low = from;
  while (low + step < to && values[low + step]! <= limit) {
    low += step;
    step *= 2;
  }
  return firstAbove(values, limit, low, Math.min(low + step + 1, to));
}
