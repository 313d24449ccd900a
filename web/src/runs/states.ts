import { CHAIN_STATES } from "../ui/parts";
import type { ChainState, Counts, RunState } from "../api/types";

export const RUN_STATES: RunState[] = ["running", "interrupted", "succeeded", "partially-succeeded", "failed", "cancelled"];

/** Whether a run will not go on by itself. */
export function isOver(state: RunState): boolean {
  return state !== "running" && state !== "interrupted";
}

export function hasChainEnded(state: ChainState): boolean {
  return state === "succeeded" || state === "failed" || state === "cancelled";
}

/** How many chains have ended, and how many there are. */
export function ended(counts: Counts): { done: number; total: number } {
  const total = CHAIN_STATES.reduce((sum, s) => sum + counts[s], 0);
  return { done: counts.succeeded + counts.failed + counts.cancelled, total };
}

/** `3 of 12, 1 failed` */
export function progressWords(counts: Counts): string {
  const { done, total } = ended(counts);
  if (total === 0) return "no chains yet";
  const number = (n: number) => n.toLocaleString("en");
  return `${number(done)} of ${number(total)}${counts.failed > 0 ? `, ${number(counts.failed)} failed` : ""}`;
}
