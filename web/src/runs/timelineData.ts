import { CHAIN_STATE_CODES, type ChainState, type Mishap } from "../api/types";
import { MARK, type LanesData } from "../canvas/lanesData";
import { colourOf } from "../ui/colours";
import { duration } from "../ui/format";
import type { BoardState } from "./boardState";

/** What of a run is to be seen. */
export interface TimelineFilter {
  /** A part of the names of steps. */
  step: string;
  /** The capability set, by its number in the board; -1 is the empty one. `null` shows all. */
  set: number | null;
  state: ChainState | "mishap" | null;
}

export interface TimelineColours {
  none: string;
  failed: string;
  lost: string;
}

/** A picture, and what its bars stand for. */
export interface Timeline {
  data: LanesData;
  /** The row of a chain in the board, or -1 and less for the mishaps: the first one is -1. */
  source: Int32Array;
}

const NOBODY = "no agent";
const names = new Intl.Collator("en", { numeric: true });
const code = (state: ChainState) => CHAIN_STATE_CODES.indexOf(state);
const FAILED = code("failed");
const RUNNING = code("running");
const REGISTERED = code("registered");
const PAUSED = code("paused");

/** A capability set in words. */
export function setName(capabilities: string[]): string {
  return capabilities.length > 0 ? [...capabilities].sort(names.compare).join(" + ") : "none";
}

/** Which colour stands for what: first no capabilities, then every set, then what went wrong. */
function legend(state: BoardState, colours: TimelineColours): LanesData["colours"] {
  return [
    { name: "no capabilities", colour: colours.none },
    ...state.classes.map((set, i) => ({ name: setName(set), colour: colourOf(i) })),
    { name: "failed attempt", colour: colours.failed },
    { name: "lost with its agent", colour: colours.lost },
  ];
}

/** Agents as lanes, by their names. */
function lanesOf(state: BoardState) {
  const extra = state.mishaps.map((m) => m.agent).filter((agent) => agent !== null);
  const all = [...new Set([...state.agents, ...extra])].sort(names.compare);
  const lane = new Map(all.map((name, i) => [name, i]));
  return { all, ofAgent: Int32Array.from(state.agents, (name) => lane.get(name)!), lane };
}

export function timeline(state: BoardState, now: number, filter: TimelineFilter, colours: TimelineColours): Timeline {
  const { chains, mishaps } = state;
  const { all, ofAgent, lane: laneOf } = lanesOf(state);
  const most = chains.length + mishaps.length;
  const lane = new Int32Array(most);
  const start = new Float64Array(most);
  const end = new Float64Array(most);
  const colour = new Int32Array(most);
  const mark = new Uint8Array(most);
  const source = new Int32Array(most);
  const wantedKind = kindsNamed(state, filter.step);
  const wantedState = filter.state === null || filter.state === "mishap" ? -1 : code(filter.state);
  const isEmpty = Uint8Array.from(state.classes, (set) => (set.length === 0 ? 1 : 0));
  const isWantedSet = (set: number) => filter.set === null || (isEmpty[set] ? -1 : set) === filter.set;
  let count = 0;
  let nobody = false;
  const put = (where: number, from: number, to: number, what: number, sign: number, of: number) => {
    nobody ||= where < 0;
    lane[count] = where < 0 ? all.length : where;
    start[count] = from;
    end[count] = Math.max(to, from);
    colour[count] = what;
    mark[count] = sign;
    source[count] = of;
    count += 1;
  };
  for (let row = 0; filter.state !== "mishap" && row < chains.length; row++) {
    const is = chains.state[row]!;
    // Chains that wait for their next attempt still have the times of the last one, which is a mishap.
    if (chains.started[row]! < 0 || is === REGISTERED || is === PAUSED) continue;
    if (wantedState >= 0 && is !== wantedState) continue;
    if (!wantedKind[chains.kind[row]!] || !isWantedSet(chains.class[row]!)) continue;
    const until = is === RUNNING ? now : chains.ended[row]!;
    const sign = is === FAILED ? MARK.failed : chains.attempt[row]! > 1 ? MARK.retried : MARK.none;
    const set = chains.class[row]!;
    put(ofAgent[chains.agent[row]!] ?? -1, chains.started[row]!, until, isEmpty[set] ? 0 : set + 1, sign, row);
  }
  const failedColour = state.classes.length + 1;
  for (let i = 0; (filter.state === null || filter.state === "mishap") && i < mishaps.length; i++) {
    const mishap = mishaps[i]!;
    const row = chains.rowOf(mishap.chain);
    if (row < 0 || !wantedKind[chains.kind[row]!] || !isWantedSet(chains.class[row]!)) continue;
    // The last attempt of a chain that has failed for good is the chain itself.
    if (filter.state === null && chains.state[row] === FAILED && chains.attempt[row] === mishap.attempt) continue;
    const where = mishap.agent === null ? -1 : (laneOf.get(mishap.agent) ?? -1);
    put(where, mishap.started, mishap.ended, mishap.lost ? failedColour + 1 : failedColour, mishap.lost ? MARK.lost : MARK.failed, -1 - i);
  }
  return {
    data: {
      lanes: nobody ? [...all, NOBODY] : all,
      lane: lane.subarray(0, count),
      start: start.subarray(0, count),
      end: end.subarray(0, count),
      colour: colour.subarray(0, count),
      mark: mark.subarray(0, count),
      colours: legend(state, colours),
    },
    source: source.subarray(0, count),
  };
}

/** For each kind whether one of its steps has this in its name. */
function kindsNamed(state: BoardState, part: string): Uint8Array {
  const wanted = part.toLowerCase();
  const steps = state.steps.map((name) => name.toLowerCase().includes(wanted));
  return Uint8Array.from(state.kinds, (kind) => (wanted === "" || kind.some((step) => steps[step]) ? 1 : 0));
}

/** The mishap a bar stands for, if it stands for one. */
export function mishapOf(state: BoardState, source: number): Mishap | undefined {
  return source < 0 ? state.mishaps[-1 - source] : undefined;
}

/** The row in the board of the chain that a bar belongs to. */
export function rowOf(state: BoardState, source: number): number {
  return source < 0 ? state.chains.rowOf(mishapOf(state, source)?.chain ?? -1) : source;
}

/** What a bar is, in words. */
export function sayBar(state: BoardState, { data, source }: Timeline, bar: number): string {
  const from = source[bar]!;
  const row = rowOf(state, from);
  const { chains } = state;
  if (row < 0) return "";
  const mishap = mishapOf(state, from);
  const took = duration(data.end[bar]! - data.start[bar]!);
  const words = CHAIN_STATE_CODES[chains.state[row]!];
  const what = mishap ? (mishap.lost ? "agent lost" : "failed") : words;
  const link = what === "running" ? "for" : "after";
  const attempt = mishap?.attempt ?? chains.attempt[row]!;
  return [
    state.stepsOf(row).join(" → "),
    `chain ${chains.chain[row]}, ${what} ${link} ${took}, started at ${duration(data.start[bar]!)}`,
    attempt > 1 || mishap ? `attempt ${attempt}` : "",
    mishap?.message ?? "",
    `requires: ${setName(state.classes[chains.class[row]!] ?? [])}`,
  ]
    .filter(Boolean)
    .join("\n");
}
