import type { Figure } from "../api/types";
import { bytes, duration, number } from "../ui/format";
import { BINARY, DECIMAL, TIMES } from "./scale";

/** Something that can be compared. */
export interface Measure {
  id: string;
  name: string;
  of: (figure: Figure) => number;
  say: (value: number) => string;
  scale: "log" | "linear";
  /** Values that make good ticks, or steps between them; the smallest first. */
  ticks: number[];
  best: "least" | "most";
}

export const MAKESPAN: Measure = {
  id: "makespan",
  name: "Makespan",
  of: (f) => f.makespan,
  say: (seconds) => duration(seconds * 1000),
  scale: "log",
  ticks: TIMES,
  best: "least",
};

const MEASURES: Measure[] = [
  MAKESPAN,
  {
    id: "ratio",
    name: "Makespan / lower bound",
    of: ratio,
    say: (v) => `${v.toFixed(v < 10 ? 3 : 1)}×`,
    scale: "linear",
    ticks: DECIMAL,
    best: "least",
  },
  { id: "bytes", name: "Bytes moved", of: (f) => f.bytes_moved, say: bytes, scale: "log", ticks: BINARY, best: "least" },
  {
    id: "utilisation",
    name: "Utilisation",
    of: (f) => f.utilisation * 100,
    say: (v) => `${v.toFixed(1)} %`,
    scale: "linear",
    ticks: DECIMAL,
    best: "most",
  },
  { id: "cost", name: "Cost", of: (f) => f.cost, say: (v) => v.toFixed(v < 1 ? 4 : 2), scale: "linear", ticks: DECIMAL, best: "least" },
  {
    id: "wasted",
    name: "Executions in vain",
    of: (f) => f.wasted,
    say: number,
    scale: "linear",
    ticks: DECIMAL.filter((v) => v >= 1),
    best: "least",
  },
];

/** How many times longer it took than it must. */
export function ratio(figure: Figure): number {
  return figure.makespan / Math.max(figure.lower_bound, 1e-9);
}

/** The measures that say something about these figures: a cost only if nodes have a price. */
export function measuresFor(figures: Figure[]): Measure[] {
  const optional = new Set(["cost", "wasted"]);
  return MEASURES.filter((m) => !optional.has(m.id) || figures.some((f) => m.of(f) > 0));
}

/** Figures by policy and number of nodes. */
export class Grid {
  private readonly cells = new Map<string, Figure>();
  readonly nodes: number[];

  constructor(
    readonly policies: string[],
    /** Those of which results are still to come. */
    expected: number[],
    figures: Figure[],
  ) {
    for (const figure of figures) this.cells.set(key(figure.policy, figure.nodes), figure);
    this.nodes = [...new Set([...expected, ...figures.map((f) => f.nodes)])].sort((a, b) => a - b);
  }

  at(policy: string, nodes: number): Figure | undefined {
    return this.cells.get(key(policy, nodes));
  }

  /** The best value that was reached with so many nodes, once there is something to compare. */
  best(measure: Measure, nodes: number): number | undefined {
    const values = this.policies.flatMap((p) => this.at(p, nodes) ?? []).map(measure.of);
    if (values.length < 2) return undefined;
    return measure.best === "least" ? Math.min(...values) : Math.max(...values);
  }

  /** No policy can do better with so many nodes. */
  lowerBound(nodes: number): number | undefined {
    for (const policy of this.policies) {
      const figure = this.at(policy, nodes);
      if (figure) return figure.lower_bound;
    }
    return undefined;
  }
}

function key(policy: string, nodes: number): string {
  return `${nodes} ${policy}`;
}

/** Whether a value is as good as the best, but for rounding. */
export function isBest(value: number, best: number | undefined): boolean {
  return best !== undefined && Math.abs(value - best) <= 1e-6 * Math.abs(best);
}

/** A value as short as at an axis: `20 min`, not `20 min 0 s`. */
export function shortly(measure: Measure, value: number): string {
  return measure.say(value).replace(/ 0 (s|min|h)$/, "").replace(/\.0+(?= )/, "");
}
