import { CHAIN_STATE_CODES, type ChainState } from "../api/types";
import { number } from "../ui/format";
import { BY_URGENCY, SIGNS } from "../ui/states";
import type { BoardState } from "./boardState";
import type { GraphModel, Standing } from "./graphModel";

/** The sign of a state, as badges have it, or that of a step of which nothing is known. */
export function signOf(standing: Standing): string {
  return standing === "none" ? "·" : SIGNS[standing];
}

const WORDS: Record<ChainState, string> = {
  registered: "waiting",
  running: "running",
  paused: "paused",
  succeeded: "succeeded",
  failed: "failed",
  cancelled: "cancelled",
};

function countOf(board: BoardState, step: number, state: ChainState): number {
  return board.countOf(step, CHAIN_STATE_CODES.indexOf(state));
}

/** `10 failed, 16 running, 9,974 succeeded`, what matters most first. */
export function countsInWords(board: BoardState | null, step: number): string {
  if (!board || step < 0 || board.totalOf(step) === 0) return "not planned yet";
  return BY_URGENCY.filter((state) => countOf(board, step, state) > 0)
    .map((state) => `${number(countOf(board, step, state))} ${WORDS[state]}`)
    .join(", ");
}

/** What to write into a node, from the longest to the shortest. */
export function shortCounts(board: BoardState | null, step: number): string[] {
  if (!board || step < 0) return [];
  const total = board.totalOf(step);
  if (total < 2) return [];
  const done = `${number(countOf(board, step, "succeeded"))}/${number(total)}`;
  const failed = countOf(board, step, "failed");
  const running = countOf(board, step, "running");
  const worst = failed > 0 ? `${number(failed)} failed` : running > 0 ? `${number(running)} running` : "";
  return worst ? [`${done}, ${worst}`, worst, done] : [done];
}

/** What a step is and how it stands, for those who cannot see it. */
export function sayStep(model: GraphModel, node: number, board: BoardState | null, step: number): string {
  const { name, service, over, conditional } = model.view.nodes[node]!;
  const parts = [name];
  if (service && service !== name) parts.push(service);
  if (over) parts.push(`for each of ${over}`);
  if (conditional) parts.push("may be skipped");
  parts.push(countsInWords(board, step));
  return parts.join(", ");
}

/** What a step of which nothing has been planned waits for. */
export function waitsFor(model: GraphModel, node: number, board: BoardState, steps: Int32Array): string {
  if (board.over) return "Nothing of it was executed.";
  const open = [...new Set(model.predecessors[node]!)].filter((before) => {
    const step = steps[before]!;
    const total = step < 0 ? 0 : board.totalOf(step);
    return total === 0 || countOf(board, step, "succeeded") < total;
  });
  if (open.length === 0) return "Nothing of it has been planned yet. Everything before it is done.";
  const named = open.slice(0, 6).map((before) => `${model.view.nodes[before]!.name} (${countsInWords(board, steps[before]!)})`);
  if (open.length > named.length) named.push(`${number(open.length - named.length)} more`);
  return `Nothing of it has been planned yet. It waits for ${listed(named)}.`;
}

/** `a`, `a and b`, `a, b and c`. */
export function listed(words: string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}
