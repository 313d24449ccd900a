import "./browserless";
import { expect, test } from "@playwright/test";
import { Problem } from "../../src/api/client";
import type { Figure, SimulatedTimeline, SimulateRequest } from "../../src/api/types";
import { MARK } from "../../src/canvas/lanesData";
import { allPolicies, fromQuery, guessName, numbers, OWN, toQuery, toRequest, usualCluster, type Choices } from "../../src/simulate/choices";
import { csv } from "../../src/simulate/csv";
import { mistakeOf, mistakeWords, sortOut } from "../../src/simulate/faults";
import { Grid, isBest, MAKESPAN, measuresFor, ratio, shortly } from "../../src/simulate/measures";
import { DECIMAL, scaleFor, TIMES } from "../../src/simulate/scale";
import { seriesOf } from "../../src/simulate/series";
import { lanesOf, programsOf, timelineNodes } from "../../src/simulate/timelineData";
import { parseTable } from "../../src/runs/files/csv";

const usual = (more: Partial<Choices> = {}): Choices => ({ ...fromQuery(new URLSearchParams()), ...more });

test("choices come back from the address they make", () => {
  for (const choices of [
    usual(),
    usual({ tasks: "50", variant: "3", seed: "9", nodes: "4, 16", cluster: "plain", policies: ["heft"], more: "catena+order:prio" }),
    usual({ source: "run", run: "12", cluster: "plain" }),
    usual({ source: "file", file: "my flow.yaml", runtime: "2.5" }),
  ]) {
    expect(fromQuery(new URLSearchParams(toQuery(choices)))).toEqual(choices);
  }
  expect(fromQuery(new URLSearchParams("policies=catena+order:prio,heft"))).toMatchObject({ policies: ["heft"], more: "catena+order:prio" });
  expect(usualCluster("run")).toBe("plain");
  expect(toQuery(usual({ policies: ["a"], more: "b:c" }))).toContain("policies=a,b:c");
});

test("numbers of nodes are read as people write them, each once and the smallest first", () => {
  expect(numbers("16, 4;1 4\n2")).toEqual([1, 2, 4, 16]);
  expect(numbers("1, x, 2.5")).toContainEqual(NaN);
  expect(numbers("")).toEqual([]);
});

test("policies are asked for once each", () => {
  expect(allPolicies(usual({ policies: ["a", "b"], more: "b, c:d ;a" }))).toEqual(["a", "b", "c:d"]);
});

test("what the server is asked is what was chosen", () => {
  const { request, wrong } = toRequest(usual({ nodes: "4, 1", seed: "7" }));
  expect(wrong).toEqual({});
  expect(request).toEqual({ workflow: { shape: "montage", tasks: 1000, seed: 1 }, cluster: "adage", nodes: [1, 4], policies: ["catena", "heft", "adage", "steep"], seed: 7 });
  expect(toRequest(usual({ source: "run", run: "3" })).request.workflow).toEqual({ run: 3 });
  expect(toRequest(usual({ source: "file", text: "{}", runtime: "1" })).request.workflow).toEqual({ file: "workflow.json", text: "{}", runtime: 1 });
  expect(toRequest(usual({ cluster: OWN, yaml: "nodes: []" })).request.cluster).toBe("nodes: []");
  expect([guessName(" <adag>"), guessName("vars:")]).toEqual(["workflow.xml", "workflow.yaml"]);
});

test("what is wrong with a form is said where it is", () => {
  const wrong = (more: Partial<Choices>) => Object.keys(toRequest(usual(more)).wrong);
  expect(wrong({ nodes: "" })).toEqual(["nodes"]);
  expect(wrong({ nodes: "0" })).toEqual(["nodes"]);
  expect(wrong({ nodes: "1, two" })).toEqual(["nodes"]);
  expect(wrong({ nodes: "1000001" })).toEqual(["nodes"]);
  expect(wrong({ policies: [], more: " " })).toEqual(["policies"]);
  expect(wrong({ seed: "-1" })).toEqual(["seed"]);
  expect(wrong({ tasks: "0" })).toEqual(["workflow"]);
  expect(wrong({ variant: "x" })).toEqual(["workflow"]);
  expect(wrong({ source: "file", text: "  " })).toEqual(["workflow"]);
  expect(wrong({ source: "file", text: "a", runtime: "" })).toEqual(["workflow"]);
  expect(wrong({ source: "run" })).toEqual(["workflow"]);
  expect(wrong({ cluster: OWN, yaml: "\n" })).toEqual(["cluster"]);
});

const request = (more: Partial<SimulateRequest> = {}): SimulateRequest => ({ workflow: { shape: "montage", tasks: 10, seed: 1 }, cluster: "adage", nodes: [1], policies: ["heft", "catena"], seed: 1, ...more });

test("a mistake is read as it is written for people", () => {
  expect(mistakeOf("error: flow.yaml:3:5: no such step")).toEqual({ severity: "error", message: "no such step", file: "flow.yaml", line: 3, column: 5 });
  expect(mistakeOf("3:5: wrong")).toEqual({ severity: "error", message: "wrong", file: undefined, line: 3, column: 5 });
  expect(mistakeOf("only words: 5")).toEqual({ severity: "error", message: "only words: 5" });
  expect(mistakeWords({ severity: "error", message: "wrong", line: 3, help: "do it right" })).toBe("3:1: wrong (do it right)");
});

test("mistakes are shown where they belong", () => {
  const own = request({ cluster: "nodes:\n  - id: x\n", workflow: { file: "flow.yaml", text: "a", runtime: 1 } });
  const faults = sortOut(own, new Problem(400, "no", [{ severity: "error", message: "in the flow", file: "flow.yaml", line: 1 }, "2:3: in the cluster", { message: "nowhere" }, 5]), []);
  expect(faults.workflow.map((m) => m.message)).toEqual(["in the flow"]);
  expect(faults.cluster.map((m) => [m.line, m.message])).toEqual([[2, "in the cluster"]]);
  expect(faults.other).toEqual(["nowhere"]);
});

test("a policy that cannot do something has the reason beside it", () => {
  const faults = sortOut(request(), undefined, ["montage:10, heft: has no ranks", "there is no policy `catena`", "the cluster is wrong:\n1:2: here", "this ends so:"]);
  expect([...faults.policies]).toEqual([["heft", "has no ranks"], ["catena", "there is no policy `catena`"]]);
  expect(faults.other).toEqual(["here", "this ends so:"]);
});

const figure = (policy: string, nodes: number, makespan: number, more: Partial<Figure> = {}): Figure => ({
  policy,
  nodes,
  makespan,
  bytes_moved: 0,
  cost: 0,
  lower_bound: 5,
  seed: 1,
  tasks: 10,
  utilisation: 0.5,
  wasted: 0,
  workflow: "w",
  ...more,
});

test("figures are found by policy and number of nodes, with the best of each", () => {
  const grid = new Grid(["a", "b"], [8, 1], [figure("a", 1, 10), figure("b", 1, 20), figure("a", 2, 7)]);
  expect(grid.nodes).toEqual([1, 2, 8]);
  expect(grid.at("b", 1)?.makespan).toBe(20);
  expect(grid.at("b", 2)).toBeUndefined();
  expect(grid.best(MAKESPAN, 1)).toBe(10);
  // One alone is not the best.
  expect(grid.best(MAKESPAN, 2)).toBeUndefined();
  expect(grid.lowerBound(2)).toBe(5);
  expect(grid.lowerBound(8)).toBeUndefined();
  expect(isBest(10.000000001, 10)).toBe(true);
  expect(isBest(10.1, 10)).toBe(false);
  expect(ratio(figure("a", 1, 10))).toBe(2);
});

test("a cost is only compared where something has a price", () => {
  const ids = (figures: Figure[]) => measuresFor(figures).map((m) => m.id);
  expect(ids([figure("a", 1, 1)])).toEqual(["makespan", "ratio", "bytes", "utilisation"]);
  expect(ids([figure("a", 1, 1, { cost: 2, wasted: 1 })])).toEqual(["makespan", "ratio", "bytes", "utilisation", "cost", "wasted"]);
  expect(shortly(MAKESPAN, 1200)).toBe("20 min");
  expect(shortly(MAKESPAN, 20)).toBe("20 s");
});

test("a scale goes from one side to the other, with ticks that have room", () => {
  const log = scaleFor([1, 100], "log", DECIMAL, 0, 400, 40);
  expect(log.at(10)).toBeCloseTo(200);
  expect(log.at(1)).toBeLessThan(log.at(2));
  expect(log.ticks).toEqual([1, 2, 5, 10, 20, 50, 100]);
  const linear = scaleFor([0, 10], "log", DECIMAL, 300, 0, 50);
  expect(linear.at(5)).toBeCloseTo(150);
  expect(linear.ticks).toEqual([0, 2, 4, 6, 8, 10]);
  for (const values of [[3], [0], [1e-4, 1e6], [59, 61], [0, 0.001]]) {
    for (const kind of ["log", "linear"] as const) {
      const { at, ticks } = scaleFor(values, kind, TIMES, 0, 500, 60);
      expect(ticks.length).toBeGreaterThan(0);
      ticks.slice(1).forEach((tick, i) => expect(at(tick) - at(ticks[i]!)).toBeGreaterThanOrEqual(60));
      for (const value of values) expect(at(value) >= 0 && at(value) <= 500).toBe(true);
    }
  }
});

test("a policy looks the same in every comparison", () => {
  const known = ["catena", "heft", "adage"];
  const [heft] = seriesOf(["heft"], known);
  expect(seriesOf(["catena", "heft", "mine"], known)[1]).toEqual(heft);
  const all = seriesOf(["catena", "heft", "adage", "mine"], known);
  expect(new Set(all.map((s) => s.colour)).size).toBe(4);
  expect(new Set(all.map((s) => s.mark)).size).toBe(4);
});

test("a table of figures can be read again", () => {
  const text = csv({ request: request(), workload: { name: 'a "b", c', tasks: 10 }, figures: [figure("heft", 2, 3.5)], timelines: [], errors: [], problem: undefined, state: "over" });
  const { rows } = parseTable(text, ",", 10, true);
  expect(rows[0]).toHaveLength(11);
  expect(rows[1]).toEqual(['a "b", c', "10", "2", "heft", "1", "3.5", "0", "0.5", "0", "0", "5"]);
});

test("a program has the same colour in every timeline, and what was in vain is marked", () => {
  const timelineOf = (programs: string[]): SimulatedTimeline => ({ policy: "p", nodes: 1, makespan: 2, names: ["n0"], node: [0, 0], start: [0, 1.5], end: [1.5, 2], program: [0, 1], programs, vain: [0, 1] });
  const [one, other] = [timelineOf(["a", "b"]), timelineOf(["b", "c"])];
  const programs = programsOf([one, other]);
  expect(programs).toEqual(["a", "b", "c"]);
  expect([...lanesOf(one, programs).colour]).toEqual([0, 1]);
  expect([...lanesOf(other, programs).colour]).toEqual([1, 2]);
  expect([...lanesOf(one, programs).start]).toEqual([0, 1500]);
  expect([...lanesOf(one, programs).mark]).toEqual([MARK.none, MARK.vain]);
  expect([timelineNodes([1, 4, 16, 64]), timelineNodes([64, 32])]).toEqual([16, 32]);
});
