import type { CriticalPath } from "../api/types";
import { colourOf } from "../ui/colours";

/** What the time of a run was spent on, along its critical path. */
export interface PathShares {
  /** Executing, by step, the most first. Chains of several steps share their time equally. */
  steps: { name: string; millis: number; chains: number }[];
  running: number;
  /** Between when a chain could run and when it did. */
  waiting: number;
  /** The rest: planning, and what is between a chain and the next. */
  other: number;
}

export function shares({ total, links }: CriticalPath): PathShares {
  const steps = new Map<string, { millis: number; chains: number }>();
  let running = 0;
  let waiting = 0;
  for (const link of links) {
    const ran = link.ended - link.started;
    running += ran;
    waiting += link.waited;
    const names = link.steps.length > 0 ? link.steps : link.tasks;
    for (const name of names) {
      const known = steps.get(name) ?? { millis: 0, chains: 0 };
      known.millis += ran / names.length;
      known.chains += 1;
      steps.set(name, known);
    }
  }
  const sorted = [...steps].map(([name, spent]) => ({ name, ...spent })).sort((a, b) => b.millis - a.millis);
  return { steps: sorted, running, waiting, other: Math.max(total - running - waiting, 0) };
}

/** A colour for each step, by how much it takes: those that take the most differ for sure. */
export function coloursOf({ steps }: PathShares): (name: string) => string {
  const rank = new Map(steps.map((step, i) => [step.name, i]));
  return (name) => colourOf(rank.get(name) ?? 0);
}

/** `73 %`, and `less than 1 %` where rounding would say that there is nothing. */
export function percent(part: number, whole: number): string {
  const share = whole > 0 ? (100 * part) / whole : 0;
  return share > 0 && share < 1 ? "less than 1 %" : `${Math.round(share)} %`;
}

/** What would shorten the run, the most effective first. */
export function advice({ steps, waiting, other, running }: PathShares, total: number): string[] {
  const words: [number, string][] = [];
  const [most, second] = steps;
  if (most && most.millis > total / 3) words.push([most.millis, `A faster ${most.name} would shorten the run most.`]);
  else if (most && second && running > total / 3) {
    words.push([most.millis, `No single step stands out: ${most.name} and ${second.name} take the most time.`]);
  }
  if (most && most.chains > 3 && most.millis > total / 3) {
    const times = `${most.chains} executions of ${most.name} come one after the other`;
    words.push([most.millis, `${times}; if they need not, let them run beside each other.`]);
  }
  if (waiting > total * 0.1) words.push([waiting, "More agents that can execute what waits, or a higher priority, would let chains start sooner."]);
  if (other > total * 0.1) words.push([other, "Some time passes between chains: many short ones cost more than a few long ones."]);
  if (words.length === 0) return ["The run was hardly held up: other agents or priorities would not have made it much shorter."];
  return words.sort((a, b) => b[0] - a[0]).map(([, sentence]) => sentence);
}

/** A piece of the bar that shows the whole time. */
export interface Piece {
  from: number;
  to: number;
  /** The link it belongs to, -1 if several share it. */
  link: number;
  waiting: boolean;
}

/** Pieces of the time of a path, at most about twice `most`: neighbours that are too short to be told apart become one. */
export function pieces({ total, links }: CriticalPath, most = 400): Piece[] {
  const result: Piece[] = [];
  const least = total / most;
  const begin = (links.at(-1)?.ended ?? 0) - total;
  /** How much of the last piece was spent waiting. */
  let waited = 0;
  const put = (from: number, to: number, link: number, waiting: boolean) => {
    if (to <= from) return;
    const last = result.at(-1);
    const time = waiting ? to - from : 0;
    if (last && to - from < least && last.to - last.from < least) {
      waited += time;
      // It looks like what it is for the most part.
      Object.assign(last, { to, link: last.link === link ? link : -1, waiting: 2 * waited > to - last.from });
    } else {
      waited = time;
      result.push({ from, to, link, waiting });
    }
  };
  links.forEach((link, i) => {
    put(link.started - link.waited - begin, link.started - begin, i, true);
    put(link.started - begin, link.ended - begin, i, false);
  });
  return result;
}
