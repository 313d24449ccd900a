/** From values to places on a picture. */
export interface Scale {
  at: (value: number) => number;
  ticks: number[];
}

/** 1, 2 and 5, by powers of ten. */
export const DECIMAL = Array.from({ length: 60 }, (_, i) => [1, 2, 5][i % 3]! * 10 ** (Math.floor(i / 3) - 6));
/** Of bytes: every fourth power of two. */
export const BINARY = Array.from({ length: 31 }, (_, i) => 4 ** i);
/** Seconds that have a short name. */
export const TIMES = [
  ...[0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30],
  ...[1, 2, 5, 10, 20, 30].map((minutes) => minutes * 60),
  ...[1, 2, 5, 10, 20, 40, 80, 160].map((hours) => hours * 3600),
  ...[10, 20, 50, 100, 200, 500].map((days) => days * 86400),
];

/**
 * A scale from values to pixels between `from` and `to`. A logarithmic one becomes linear if there are values that have no
 * logarithm. Of the ticks that would be good, those are taken that have `room`.
 */
export function scaleFor(values: number[], kind: "log" | "linear", candidates: number[], from: number, to: number, room: number): Scale {
  const isLog = kind === "log" && values.every((v) => v > 0);
  const f = isLog ? Math.log : (v: number) => v;
  let least = Math.min(...values);
  let most = Math.max(...values);
  if (least === most) {
    least = isLog ? least / 2 : least - 1;
    most = isLog ? most * 2 : most + 1;
  }
  const margin = 0.04 * (f(most) - f(least));
  const [low, high] = [f(least) - margin, f(most) + margin];
  const at = (value: number) => from + ((f(value) - low) / (high - low)) * (to - from);
  const good = isLog ? candidates : multiples(candidates, low, high, Math.abs(to - from) / room);
  const inside = good.filter((v) => f(v) >= low && f(v) <= high);
  return { at, ticks: thin(inside.length > 1 ? inside : [least, most], at, room) };
}

/** The multiples of a step that is one of the candidates, at most so many of them. */
function multiples(candidates: number[], low: number, high: number, most: number): number[] {
  const step = candidates.find((c) => (high - low) / c <= most) ?? high - low;
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => (first + i) * step);
}

/** Leaves ticks out until each has room. */
function thin(ticks: number[], at: (value: number) => number, room: number): number[] {
  const kept: number[] = [];
  for (const tick of ticks) {
    const before = kept.at(-1);
    if (before === undefined || Math.abs(at(before) - at(tick)) >= room) kept.push(tick);
  }
  return kept;
}
