import type { ChainState, RunState } from "../api/types";

/** Colours for things that have none of their own: capability sets, steps, users. */
const PALETTE = [
  "#4a6fa5",
  "#c8793f",
  "#5a9e6f",
  "#a8577e",
  "#8a8f3c",
  "#6a5acd",
  "#2f8f9d",
  "#b5524d",
  "#7c6f64",
  "#3f7fbf",
];

/** The colour of the thing with this number. */
export function colourOf(number: number): string {
  return PALETTE[((number % PALETTE.length) + PALETTE.length) % PALETTE.length]!;
}

/** The colour of something with a name: always the same one. */
export function colourOfName(name: string): string {
  let hash = 0;
  for (const c of name) hash = (Math.imul(hash, 31) + c.codePointAt(0)!) | 0;
  return colourOf(hash >>> 8);
}

/** The value of a colour variable, for canvases. */
export function token(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** The name of the colour variable of a state. */
export function stateToken(state: ChainState | RunState): string {
  switch (state) {
    case "interrupted":
      return "state-paused";
    case "partially-succeeded":
      return "state-failed";
    default:
      return `state-${state}`;
  }
}
