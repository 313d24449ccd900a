import { expect, test } from "@playwright/test";
import type { CriticalPath, FailureView, Provenance } from "../../src/api/types";
import { MARK } from "../../src/canvas/lanesData";
import { summary, took } from "../../src/runs/boardChains";
import { BoardState } from "../../src/runs/boardState";
import { advice, coloursOf, percent, pieces, shares } from "../../src/runs/criticalPathWords";
import { grouped, logPlace } from "../../src/runs/failures";
import { GraphModel, graphPath, standing } from "../../src/runs/graphModel";
import { countsInWords, listed, shortCounts, waitsFor } from "../../src/runs/graphWords";
import { originTree, type OriginNode } from "../../src/runs/originTree";
import { setName, rowOf, sayBar, timeline, type TimelineFilter } from "../../src/runs/timelineData";
import { trace } from "../../src/runs/timelineTrace";
import { mishap, news } from "./board";

const ALL: TimelineFilter = { step: "", set: null, state: null };
const COLOURS = { none: "#888", failed: "#f00", lost: "#000" };

/** Two steps, of which some chains execute both; agents whose names are not in order; two capability sets, one of them empty. */
function board(): BoardState {
  const state = new BoardState("one", 1000);
  state.take(
    news(
      [
        { chain: 10, state: "succeeded", kind: 0, agent: 0, started: 0, ended: 50 },
        { chain: 11, state: "running", kind: 1, agent: 1, class: 1, started: 20 },
        { chain: 12, state: "registered", kind: 1 },
      ],
      { steps: ["align", "count"], kinds: [[0], [0, 1]], agents: ["a10", "a9"], classes: [[], ["gpu", "big"]] },
    ),
  );
  return state;
}

test("chains are counted by step, also those that execute several", () => {
  const state = board();
  expect(state.countsOf(0)).toEqual({ registered: 1, running: 1, paused: 0, succeeded: 1, failed: 0, cancelled: 0 });
  expect(state.countsOf(1)).toEqual({ registered: 1, running: 1, paused: 0, succeeded: 0, failed: 0, cancelled: 0 });
  expect([state.totalOf(0), state.totalOf(1), state.totalOf(7)]).toEqual([3, 2, 0]);
  expect(state.stepsOf(1)).toEqual(["align", "count"]);
  expect([...state.kindsWith(1)]).toEqual([0, 1]);
});

test("what is new replaces what was known of a chain, and is counted once", () => {
  const state = board();
  const changed = state.take(
    news([{ chain: 11, state: "failed", kind: 1, agent: 1, class: 1, started: 20, ended: 60, attempt: 2 }, { chain: 13, state: "running", kind: 2, agent: 2, started: 70 }], {
      version: 2,
      steps: ["report"],
      kinds: [[2]],
      agents: ["a1"],
    }),
  );
  expect(changed).toBe(true);
  expect(state.version).toBe(2);
  expect(state.chains.length).toBe(4);
  expect(state.steps).toEqual(["align", "count", "report"]);
  expect(state.countsOf(1)).toMatchObject({ running: 0, failed: 1, registered: 1 });
  expect(state.countsOf(2)).toMatchObject({ running: 1 });
  const row = state.chains.rowOf(11);
  expect(row).toBe(1);
  expect([state.chains.ended[row], state.chains.attempt[row]]).toEqual([60, 2]);
  expect(state.chains.rowOf(99)).toBe(-1);
  expect(state.take(news([], { version: 3 }))).toBe(false);
  expect(state.version).toBe(3);
  expect(state.take(news([], { version: 3, over: true }))).toBe(true);
});

test("a board grows as long as chains come, and keeps what it has", () => {
  const state = new BoardState("one", 0);
  state.take(news([], { steps: ["s"], kinds: [[0]] }));
  for (let from = 0; from < 5000; from += 500) {
    state.take(news(Array.from({ length: 500 }, (_, i) => ({ chain: from + i, state: "succeeded" as const, started: from + i, ended: from + i + 1 }))));
  }
  expect(state.chains.length).toBe(5000);
  expect(state.countOf(0, 3)).toBe(5000);
  for (const chain of [0, 1023, 1024, 4999]) expect(state.chains.started[state.chains.rowOf(chain)]).toBe(chain);
});

test("what went wrong is known once per attempt, with times like those of the chains", () => {
  const state = board();
  state.take(news([], { mishaps: [mishap(10), mishap(11)] }));
  state.take(news([], { mishaps: [mishap(10, { message: "known better" }), mishap(10, { attempt: 2 })] }));
  expect(state.mishaps.map((m) => [m.chain, m.attempt, m.started, m.ended, m.message])).toEqual([
    [10, 1, 10, 20, "known better"],
    [11, 1, 10, 20, "exit code 1"],
    [10, 2, 10, 20, "exit code 1"],
  ]);
});

test("the chains of a step are listed with failures first, and timed if they have succeeded", () => {
  const state = board();
  state.take(news([{ chain: 14, state: "failed", started: 0, ended: 5 }, { chain: 15, state: "succeeded", started: 10, ended: 20 }]));
  const { rows, mean, longest, ended } = summary(state, 0, null);
  expect([...rows].map((row) => state.chains.chain[row])).toEqual([14, 11, 12, 10, 15]);
  expect([mean, longest, ended]).toEqual([30, 50, 2]);
  expect([...summary(state, 0, "failed").rows].map((row) => state.chains.chain[row])).toEqual([14]);
  expect([took(state, 0, 100), took(state, 1, 100), took(state, 2, 100)]).toEqual([50, 80, -1]);
});

test("a timeline has a lane per agent, by names as people sort them, and bars that go on until now", () => {
  const state = board();
  const picture = timeline(state, 100, ALL, COLOURS);
  const { data } = picture;
  expect(data.lanes).toEqual(["a9", "a10"]);
  expect([...data.lane]).toEqual([1, 0]);
  expect([...data.start]).toEqual([0, 20]);
  expect([...data.end]).toEqual([50, 100]);
  // No capabilities are the first colour, whatever their number.
  expect([...data.colour].map((c) => data.colours[c]!.name)).toEqual(["no capabilities", "big + gpu"]);
  expect(sayBar(state, picture, 1)).toBe("align → count\nchain 11, running for 80 ms, started at 20 ms\nrequires: big + gpu");
  expect(setName([])).toBe("none");
});

test("a failed attempt is a bar of its own, but not twice if the chain has failed with it", () => {
  const state = board();
  state.take(
    news([{ chain: 10, state: "failed", agent: 0, attempt: 2, started: 30, ended: 50 }, { chain: 16, state: "registered", started: 5, ended: 9, attempt: 2 }], {
      mishaps: [mishap(10), mishap(10, { attempt: 2 }), mishap(11, { agent: null, lost: true }), mishap(99)],
    }),
  );
  const picture = timeline(state, 100, ALL, COLOURS);
  const marks = [...picture.data.mark];
  expect(marks).toEqual([MARK.failed, MARK.none, MARK.failed, MARK.lost]);
  expect([...picture.source]).toEqual([0, 1, -1, -3]);
  expect(picture.data.lanes).toEqual(["a1", "a9", "a10", "no agent"]);
  expect(picture.data.lane[3]).toBe(3);
  expect(rowOf(state, -3)).toBe(1);
  expect(sayBar(state, picture, 2)).toContain("chain 10, failed after 10 ms, started at 10 ms\nattempt 1\nexit code 1");
  const only = timeline(state, 100, { ...ALL, state: "mishap" }, COLOURS);
  expect([...only.source]).toEqual([-1, -2, -3]);
});

test("a timeline shows what is asked for", () => {
  const state = board();
  const sources = (filter: Partial<TimelineFilter>) => [...timeline(state, 100, { ...ALL, ...filter }, COLOURS).source];
  expect(sources({ step: "COUNT" })).toEqual([1]);
  expect(sources({ step: "nothing" })).toEqual([]);
  expect(sources({ set: -1 })).toEqual([0]);
  expect(sources({ set: 1 })).toEqual([1]);
  expect(sources({ state: "succeeded" })).toEqual([0]);
});

test("a trace can be read by others: agents are processes, and events of a thread do not overlap", () => {
  const state = board();
  state.take(news([{ chain: 17, state: "succeeded", agent: 0, started: 10, ended: 30 }], { mishaps: [mishap(10, { agent: "a10", message: 'a "quote"' })] }));
  const pieces = trace(state, timeline(state, 100, ALL, COLOURS));
  const { traceEvents } = JSON.parse(pieces.join("")) as { traceEvents: Record<string, unknown>[] };
  expect(traceEvents.filter((e) => e["ph"] === "M").map((e) => [e["pid"], (e["args"] as { name: string }).name])).toEqual([[1, "a9"], [2, "a10"]]);
  const bars = traceEvents.filter((e) => e["ph"] === "X");
  expect(bars.map((e) => [e["pid"], e["tid"], e["ts"], e["dur"], e["name"]])).toEqual([
    [2, 1, 0, 50_000, "align"],
    [1, 1, 20_000, 80_000, "align → count"],
    [2, 2, 10_000, 20_000, "align"],
    [2, 3, 10_000, 10_000, "align"],
  ]);
  expect(bars[1]).toMatchObject({ cat: "big + gpu", args: { chain: 11, attempt: 1, state: "running" } });
  expect(bars[3]).toMatchObject({ cname: "terrible", args: { chain: 10, state: "failed attempt", message: 'a "quote"' } });
});

test("a trace of many chains comes in pieces that are one text together", () => {
  const state = new BoardState("one", 0);
  state.take(news([], { steps: ["s"], kinds: [[0]], agents: ["a"], classes: [[]] }));
  for (const count of [4999, 5000, 12_000]) {
    state.take(news(Array.from({ length: count }, (_, i) => ({ chain: i, state: "succeeded" as const, agent: 0, started: i, ended: i + 1 }))));
    const pieces = trace(state, timeline(state, 0, ALL, COLOURS));
    expect((JSON.parse(pieces.join("")) as { traceEvents: unknown[] }).traceEvents).toHaveLength(count + 1);
  }
  expect(JSON.parse(trace(new BoardState("x", 0), timeline(new BoardState("x", 0), 0, ALL, COLOURS)).join(""))).toMatchObject({ traceEvents: [] });
});

/** A path of links that follow each other: how long each waited, and ran. */
function path(links: { waited: number; ran: number; steps?: string[] }[], before = 0): CriticalPath {
  let now = before;
  const all = links.map(({ waited, ran, steps = ["s"] }, chain) => {
    const started = now + waited;
    now = started + ran;
    return { chain, agent: "a", steps, tasks: ["t"], waited, started, ended: now };
  });
  return { total: now, links: all };
}

test("the time of a critical path is shared by its steps, waiting and the rest", () => {
  const spent = shares(path([{ waited: 10, ran: 60, steps: ["a", "b"] }, { waited: 0, ran: 20, steps: ["b"] }, { waited: 0, ran: 5, steps: [] }], 5));
  expect(spent).toEqual({
    steps: [{ name: "b", millis: 50, chains: 2 }, { name: "a", millis: 30, chains: 1 }, { name: "t", millis: 5, chains: 1 }],
    running: 85,
    waiting: 10,
    other: 5,
  });
  const colour = coloursOf(spent);
  expect(new Set(["a", "b", "t"].map(colour)).size).toBe(3);
});

test("a share that is there is never nothing", () => {
  expect(percent(1, 1000)).toBe("less than 1 %");
  expect(percent(0, 1000)).toBe("0 %");
  expect(percent(730, 1000)).toBe("73 %");
  expect(percent(1, 0)).toBe("0 %");
});

test("advice begins with what matters most", () => {
  const say = (of: CriticalPath) => advice(shares(of), of.total);
  expect(say(path([{ waited: 0, ran: 90, steps: ["slow"] }, { waited: 0, ran: 10, steps: ["quick"] }]))).toEqual(["A faster slow would shorten the run most."]);
  expect(say(path([{ waited: 60, ran: 40 }]))[0]).toContain("More agents");
  expect(say(path([{ waited: 0, ran: 30 }], 70))[0]).toContain("Some time passes between chains");
  expect(say(path(Array.from({ length: 5 }, () => ({ waited: 0, ran: 10 }))))[1]).toContain("5 executions of s come one after the other");
  expect(say(path([]))[0]).toContain("hardly held up");
});

test("the pieces of a path are where they were, each as long as it was", () => {
  expect(pieces(path([{ waited: 10, ran: 50 }, { waited: 0, ran: 40 }]))).toEqual([
    { from: 0, to: 10, link: 0, waiting: true },
    { from: 10, to: 60, link: 0, waiting: false },
    { from: 60, to: 100, link: 1, waiting: false },
  ]);
});

test("a path of thousands of links has only so many pieces, whatever they do by turns", () => {
  const many = path(Array.from({ length: 5000 }, () => ({ waited: 1, ran: 2 })));
  const all = pieces(many, 100);
  expect(all.length).toBeLessThanOrEqual(201);
  expect(all.every((p, i) => p.from === (i === 0 ? 0 : all[i - 1]!.to))).toBe(true);
  expect(all.at(-1)!.to).toBe(many.total);
  // They ran more than they waited.
  expect(all.every((p) => !p.waiting && p.link === -1)).toBe(true);
});

test("failures that say the same are one, and the most frequent come first", () => {
  const failure = (chain: number, message: string, help: string | null = null): FailureView => ({
    chain,
    attempt: 2,
    failure: { message, help, command: "", exit_code: 1, log: `logs/${chain}-2-3.err`, signal: null, tail: [], task: "t" },
  });
  const groups = grouped([failure(1, "rare"), failure(2, "often"), failure(3, "often"), failure(4, "often", "do this")]);
  expect(groups.map((g) => [g.message, g.help, g.failures.map((f) => f.chain)])).toEqual([
    ["often", null, [2, 3]],
    ["rare", null, [1]],
    ["often", "do this", [4]],
  ]);
  expect(logPlace(5, failure(1, "x"))).toBe("/runs/5/logs?log=1&task=3&attempt=2&stream=err");
  const without = failure(1, "x");
  without.failure.log = null;
  expect(logPlace(5, without)).toContain("task=0");
});

type Origin = Provenance["tasks"][number];

const origin = (task: string, inputs: string[], outputs: string[]) => ({ task, inputs, outputs }) as unknown as Origin;
const told = (nodes: OriginNode[]): unknown[] =>
  nodes.map((n) => [(n.task as unknown as { task: string }).task + (n.isRepeated ? " again" : ""), ...told(n.below)]);

test("what something was made from stands below it, and in full only once", () => {
  const tasks = [origin("index", ["ref"], ["idx"]), origin("align", ["reads", "idx"], ["bam"]), origin("count", ["bam", "idx"], ["n"]), origin("other", ["x"], ["y"])];
  expect(told(originTree(tasks))).toEqual([["count", ["align", ["index"]], ["index again"]], ["other"]]);
  expect(told(originTree(tasks, "bam"))).toEqual([["align", ["index"]]]);
  // Of a file that nobody has made, everything is told.
  expect(originTree(tasks, "ref")).toHaveLength(2);
});

test("tasks that read what they write, or from each other in a circle, do not hang", () => {
  expect(told(originTree([origin("self", ["a"], ["a"])]))).toEqual([["self"]]);
  expect(told(originTree([origin("a", ["y"], ["x"]), origin("b", ["x"], ["y"])]))).toEqual([["a", ["b", ["a again"]]]]);
});

test("a chain of thousands of tasks is told", () => {
  const tasks = Array.from({ length: 20_000 }, (_, i) => origin(`t${i}`, [`f${i}`], [`f${i + 1}`]));
  let depth = 0;
  for (let nodes = originTree(tasks); nodes.length > 0; nodes = nodes[0]!.below) depth += 1;
  expect(depth).toBe(20_000);
});

function graph() {
  const node = (name: string, x: number, y: number) => ({ name, x, y, width: 10, height: 10 });
  const nodes = [node("align", 0, 0), node("count", 0, 50), node("plot", 20, 50), node("report", 0, 100)];
  const edges = [[0, 1], [0, 2], [1, 3], [2, 3]];
  return new GraphModel({ nodes, edges, width: 40, height: 110 } as unknown as ConstructorParameters<typeof GraphModel>[0]);
}

test("arrow keys go along edges, and to neighbours beside", () => {
  const model = graph();
  expect(model.towards(0, 0, 1)).toBe(1);
  expect(model.towards(1, 1, 0)).toBe(2);
  expect(model.towards(2, 0, 1)).toBe(3);
  expect(model.towards(3, 0, 1)).toBe(-1);
  expect(model.at(5, 55)).toBe(1);
  expect(model.at(15, 55)).toBe(-1);
  expect(model.find("plot")).toBe(2);
  expect(model.find("constructor")).toBe(-1);
});

test("a step stands as its worst chain does, and says what it waits for", () => {
  const model = graph();
  const state = board();
  const steps = model.stepsIn(state);
  expect([...steps]).toEqual([0, 1, -1, -1]);
  expect(standing(state, 0)).toBe("running");
  expect(standing(state, -1)).toBe("none");
  state.take(news([{ chain: 10, state: "failed" }]));
  expect(standing(state, 0)).toBe("failed");
  expect(countsInWords(state, 0)).toBe("1 failed, 1 running, 1 waiting");
  expect(shortCounts(state, 0)).toEqual(["0/3, 1 failed", "1 failed", "0/3"]);
  expect(waitsFor(model, 2, state, steps)).toBe("Nothing of it has been planned yet. It waits for align (1 failed, 1 running, 1 waiting).");
  expect(listed(["a", "b", "c"])).toBe("a, b and c");
  expect(graphPath(model, [{ steps: ["align"] }, { steps: ["count", "report"] }])).toEqual({ nodes: new Set([0, 1, 3]), edges: new Set([0, 2]) });
});
