const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Steps between the ticks of a time axis that people can count in. */
const STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].map((n) => n * DAY),
];

export interface Tick {
  at: number;
  label: string;
}

/** Where a time axis of so many pixels has ticks, at least `apart` pixels from each other. Times are in milliseconds. */
export function timeTicks(from: number, to: number, pixels: number, apart = 96): Tick[] {
  if (!(to > from) || pixels <= 0) return [];
  const wanted = ((to - from) * apart) / pixels;
  const step = STEPS.find((s) => s >= wanted) ?? STEPS.at(-1)!;
  const ticks: Tick[] = [];
  for (let n = Math.ceil(from / step); n * step <= to; n++) ticks.push({ at: n * step, label: tickLabel(n * step, step) });
  return ticks;
}

/** A time after the origin, only as exact as the step asks for: `1 h 20 min`, `12.5 s`. */
export function tickLabel(millis: number, step: number): string {
  if (millis === 0) return "0";
  if (millis < 0) return `-${tickLabel(-millis, step)}`;
  const parts: string[] = [];
  let rest = millis;
  for (const [length, unit] of [[DAY, "d"], [HOUR, "h"], [MINUTE, "min"]] as const) {
    const whole = Math.floor(rest / length);
    rest -= whole * length;
    if (whole > 0) parts.push(`${whole} ${unit}`);
    if (step >= length) return parts.join(" ") || "0";
  }
  if (rest > 0 && millis < SECOND) parts.push(`${Math.round(rest)} ms`);
  else if (rest > 0) parts.push(`${(rest / SECOND).toFixed(digits(step))} s`);
  return parts.join(" ");
}

function digits(step: number): number {
  if (step >= SECOND) return 0;
  return step >= 100 ? 1 : step >= 10 ? 2 : 3;
}
