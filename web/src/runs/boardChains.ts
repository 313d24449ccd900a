import { CHAIN_STATE_CODES, type ChainState } from "../api/types";
import { BY_URGENCY } from "../ui/states";
import type { BoardState } from "./boardState";

export interface StepSummary {
  /** Rows of the chains, in the order in which they are listed. */
  rows: Int32Array;
  /** Over chains that have succeeded, in milliseconds. */
  mean: number;
  longest: number;
  ended: number;
}

/** The chains of a step and how long they took. */
export function summary(board: BoardState, step: number, state: ChainState | null): StepSummary {
  const { chains } = board;
  const isOf = board.kindsWith(step);
  const wanted = state === null ? BY_URGENCY : [state];
  const groups = new Map<number, number[]>(wanted.map((each) => [CHAIN_STATE_CODES.indexOf(each), []]));
  const succeeded = CHAIN_STATE_CODES.indexOf("succeeded");
  let sum = 0;
  let longest = 0;
  let ended = 0;
  for (let row = 0; row < chains.length; row++) {
    if (!isOf[chains.kind[row]!]) continue;
    groups.get(chains.state[row]!)?.push(row);
    if (chains.state[row] !== succeeded || chains.started[row]! < 0) continue;
    const took = chains.ended[row]! - chains.started[row]!;
    sum += took;
    ended += 1;
    if (took > longest) longest = took;
  }
  const rows = Int32Array.from([...groups.values()].flat());
  return { rows, mean: ended > 0 ? sum / ended : 0, longest, ended };
}

/** How long a chain has taken so far, or -1 if it has not started. */
export function took(board: BoardState, row: number, now: number): number {
  const { chains } = board;
  if (chains.started[row]! < 0) return -1;
  const isRunning = CHAIN_STATE_CODES[chains.state[row]!] === "running";
  const end = isRunning ? now : chains.ended[row]!;
  return end < 0 ? -1 : end - chains.started[row]!;
}
