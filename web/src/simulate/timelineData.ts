import type { SimulatedTimeline } from "../api/types";
import { MARK, type LanesData } from "../canvas/lanesData";
import { colourOf } from "../ui/colours";

/** Lanes of more nodes are too thin to be compared at a glance. */
const READABLE = 16;

/** The number of nodes for which timelines are worth a look first. */
export function timelineNodes(nodes: number[]): number {
  const readable = nodes.filter((n) => n <= READABLE);
  return readable.length > 0 ? Math.max(...readable) : Math.min(...nodes);
}

/** The programs of all timelines, each once: a program has the same colour in every one of them. */
export function programsOf(timelines: SimulatedTimeline[]): string[] {
  return [...new Set(timelines.flatMap((t) => t.programs))];
}

/** What `Lanes` draws. */
export function lanesOf(timeline: SimulatedTimeline, programs: string[]): LanesData {
  const number = new Map(programs.map((program, i) => [program, i]));
  const colour = timeline.programs.map((program) => number.get(program) ?? 0);
  const millis = (seconds: number[]) => Float64Array.from(seconds, (s) => s * 1000);
  return {
    lanes: timeline.names,
    lane: Int32Array.from(timeline.node),
    start: millis(timeline.start),
    end: millis(timeline.end),
    colour: Int32Array.from(timeline.program, (p) => colour[p] ?? 0),
    mark: Uint8Array.from(timeline.vain, (vain) => (vain ? MARK.vain : MARK.none)),
    colours: programs.map((name, i) => ({ name, colour: colourOf(i) })),
  };
}
