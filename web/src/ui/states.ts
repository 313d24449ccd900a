import type { ChainState, Counts, RunState } from "../api/types";
import { number } from "./format";

/** The states of chains, in the order in which they are shown: what is done comes first, as in a bar that fills. */
export const CHAIN_STATES: ChainState[] = ["succeeded", "failed", "cancelled", "running", "paused", "registered"];

/** The same, what somebody should look at first. */
export const BY_URGENCY: ChainState[] = ["failed", "running", "paused", "registered", "cancelled", "succeeded"];

export const RUN_STATES: RunState[] = ["running", "interrupted", "succeeded", "partially-succeeded", "failed", "cancelled"];

/** A sign for each state, because a colour alone does not tell everybody. */
export const SIGNS: Record<ChainState | RunState, string> = {
  registered: "○",
  running: "◐",
  paused: "‖",
  interrupted: "‖",
  succeeded: "✓",
  "partially-succeeded": "✗",
  failed: "✗",
  cancelled: "⊘",
};

/** A state as it is read: `partially succeeded`. */
export function stateWords(state: ChainState | RunState): string {
  return state.replace("-", " ");
}

/** Whether a run will not go on by itself. */
export function isOver(state: RunState): boolean {
  return state !== "running" && state !== "interrupted";
}

export function hasChainEnded(state: ChainState): boolean {
  return state === "succeeded" || state === "failed" || state === "cancelled";
}

/** `3 of 12, 1 failed` */
export function progressWords(counts: Counts): string {
  const total = CHAIN_STATES.reduce((sum, s) => sum + counts[s], 0);
  if (total === 0) return "no chains yet";
  const done = counts.succeeded + counts.failed + counts.cancelled;
  return `${number(done)} of ${number(total)}${counts.failed > 0 ? `, ${number(counts.failed)} failed` : ""}`;
}
