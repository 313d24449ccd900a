import { expect, test } from "@playwright/test";
import { apply } from "../../src/compose/model/apply";
import { addLink, constructAround, freeName, mayUse, ownCopy, placeCopy, removeParts, repair, replaceUse, servicesOf, slug, sweep, taskOfService, unwrapNode, wrapNode } from "../../src/compose/model/edit";
import { fits, graphOf, portAt, uses, workflowOf } from "../../src/compose/model/read";
import type { Change, Composition } from "../../src/compose/model/types";
import { ports, reads, task, workflow } from "./compositions";

const after = (composition: Composition, changes: Change[]) => changes.reduce(apply, composition);
const linksOf = (composition: Composition) => Object.keys(graphOf(composition, "main")!.links).sort();

/** All links lead from one port to another that fits, and everything is used: the server would accept it. */
function expectRight(composition: Composition) {
  for (const [id, { body }] of Object.entries(composition.workflows)) {
    if (id !== composition.root) expect(uses(composition, id), `uses of ${id}`).toBeGreaterThan(0);
    if (body.kind !== "graph") continue;
    for (const [name, link] of Object.entries(body.links)) {
      const [from, to] = [portAt(composition, id, link.from, "from"), portAt(composition, id, link.to, "to")];
      expect(from && to && fits(from.type, to.type), name).toBe(true);
    }
    for (const node of Object.values(body.nodes)) {
      expect(workflowOf(composition, node.workflow)).toBeDefined();
      for (const other of node.after ?? []) expect(body.nodes[other]).toBeDefined();
    }
  }
}

test("names are made of texts and are never taken twice", () => {
  expect(slug("Größe & Länge!")).toBe("gro-e-lange");
  expect(slug("…")).toBe("part");
  expect(slug("x".repeat(100))).toHaveLength(60);
  expect(freeName("a", ["b"])).toBe("a");
  expect(freeName("a", ["a", "a-2", "a-4"])).toBe("a-3");
});

test("removing a node removes its links, what waits for it, and what only it has used", () => {
  const composition = reads();
  const changes = removeParts(composition, "main", ["second"], []);
  const left = after(composition, changes);
  expect(linksOf(left)).toEqual(["in"]);
  expect(Object.keys(graphOf(left, "main")!.nodes)).toEqual(["first", "report"]);
  expect(graphOf(left, "main")!.nodes["report"]!.after).toEqual([]);
  expect(workflowOf(left, "count")).toBeUndefined();
  expectRight(left);
  // Links must go before the node they hang on.
  expect(changes.findIndex((c) => c.change === "remove-node")).toBeGreaterThan(changes.findLastIndex((c) => c.change === "remove-link"));
});

test("removing a link leaves the nodes, and what is not there cannot be removed", () => {
  const composition = reads();
  expect(removeParts(composition, "main", [], ["out"])).toEqual([{ change: "remove-link", workflow: "main", id: "out" }]);
  expect(removeParts(composition, "main", ["nobody", "constructor"], ["nothing"])).toEqual([]);
  expect(removeParts(composition, "align", ["first"], [])).toEqual([]);
});

test("a workflow that another node still uses stays", () => {
  const composition = reads();
  graphOf(composition, "main")!.nodes["again"] = { workflow: "count", x: 0, y: 0 };
  expect(workflowOf(after(composition, removeParts(composition, "main", ["second"], [])), "count")).toBeDefined();
});

test("what nothing uses goes with everything that only it has used", () => {
  const composition = reads();
  composition.workflows["inner"] = task(ports({}, {}));
  composition.workflows["outer"] = workflow({ kind: "construct", of: "inner", construct: "curry", with: {} });
  expect(sweep(composition)).toEqual([{ change: "remove-workflow", id: "outer" }, { change: "remove-workflow", id: "inner" }]);
});

test("a map around a node keeps the links that fit, and taking it away again the rest", () => {
  const composition = reads();
  const wrapped = after(composition, wrapNode(composition, "main", "first", "map") as Change[]);
  expect(graphOf(wrapped, "main")!.nodes["first"]).toEqual({ workflow: "align-map", x: 0, y: 0 });
  // Files are not lists of files.
  expect(linksOf(wrapped)).toEqual(["out"]);
  expectRight(wrapped);
  const unwrapped = after(wrapped, unwrapNode(wrapped, "main", "first")!);
  expect(graphOf(unwrapped, "main")!.nodes["first"]!.workflow).toBe("align");
  expect(workflowOf(unwrapped, "align-map")).toBeUndefined();
  expect(linksOf(unwrapped)).toEqual(["out"]);
  expectRight(unwrapped);
});

test("a condition around a node keeps all links, there and back", () => {
  const composition = reads();
  const wrapped = after(composition, wrapNode(composition, "main", "first", "conditional") as Change[]);
  expect(linksOf(wrapped)).toEqual(["between", "in", "out"]);
  expectRight(wrapped);
  const unwrapped = after(wrapped, unwrapNode(wrapped, "main", "first")!);
  expect(unwrapped).toEqual(composition);
  expect(unwrapNode(composition, "main", "first")).toBeNull();
});

test("a node of a directory goes into a map without losing its link", () => {
  const composition = reads();
  composition.workflows["align"]!.interface = ports({ reads: "file" }, { bam: "directory" });
  delete graphOf(composition, "main")!.links["between"];
  const linked: Change = { change: "add-link", workflow: "main", id: "between", link: { from: { node: "first", port: "bam" }, to: { node: "second", port: "bam" } } };
  const wrapped = after(apply(composition, linked), wrapNode(apply(composition, linked), "main", "second", "map") as Change[]);
  expect(linksOf(wrapped)).toEqual(["between", "in"]);
});

test("a construct is only made where it can be right", () => {
  const one = ports({ a: "file" }, { b: "file" });
  const two = ports({ n: "integer", a: "file", b: "file" }, { c: "file" });
  expect(constructAround("map", "x", ports({}, {}))).toBe("It has no inputs to go through.");
  expect(constructAround("reduce", "x", one)).toContain("at least two inputs");
  expect(constructAround("reduce", "x", two)).toEqual({ of: "x", construct: "reduce", carry: "a", element: "n" });
  expect(constructAround("tree", "x", one)).toContain("two inputs of one type");
  expect(constructAround("tree", "x", two)).toEqual({ of: "x", construct: "tree", left: "a", right: "b" });
  expect(constructAround("loop", "x", one)).toMatchObject({ feedback: { b: "a" } });
  expect(constructAround("loop", "x", ports({ a: "integer" }, { b: "file" }))).toContain("“b” cannot go into any");
  expect(wrapNode(reads(), "main", "nobody", "map")).toBe("There is no such node.");
});

test("a node that uses something else keeps the links that fit", () => {
  const composition = reads();
  composition.workflows["other"] = task(ports({ bam: "string" }, { n: "string" }));
  const replaced = after(composition, replaceUse(composition, "main", "second", "other")!);
  expect(linksOf(replaced)).toEqual(["in"]);
  expect(workflowOf(replaced, "count")).toBeUndefined();
  expectRight(replaced);
  expect(replaceUse(composition, "main", "second", "count")).toBeNull();
});

test("links that ports no longer fit go with the change of the ports", () => {
  const composition = reads();
  const changes = repair(composition, [{ change: "set-interface", workflow: "align", interface: ports({ reads: "file" }, { sam: "file" }) }]);
  expect(changes.slice(1)).toEqual([{ change: "remove-link", workflow: "main", id: "between" }]);
});

test("a copy of its own leaves others as they are", () => {
  const composition = reads();
  graphOf(composition, "main")!.nodes["again"] = { workflow: "count", x: 0, y: 0 };
  const own = after(composition, ownCopy(composition, "main", "second")!);
  expect(graphOf(own, "main")!.nodes["second"]).toEqual({ ...graphOf(composition, "main")!.nodes["second"], workflow: "count-2" });
  expect(graphOf(own, "main")!.nodes["again"]!.workflow).toBe("count");
  expect(workflowOf(own, "count-2")).toEqual(workflowOf(own, "count"));
  expect(linksOf(own)).toEqual(["between", "in", "out"]);
});

test("a workflow of a library is copied with all it is made of, under names that are free", () => {
  const library: Composition = {
    name: "Library",
    root: "align",
    services: [{ id: "bwa" }, { id: "mine", name: "theirs" }, { id: "unused" }],
    workflows: {
      align: workflow({ kind: "graph", nodes: { a: { workflow: "count", x: 1, y: 1 }, b: { workflow: "choice", x: 2, y: 2 }, c: { workflow: "count-2", x: 3, y: 3 } }, links: {} }, ports({ reads: "file" }, {})),
      count: task(ports({}, {}), { service: "bwa" }),
      "count-2": task(ports({}, {}), { run: "another" }),
      choice: workflow({ kind: "construct", of: "count", construct: "conditional", when: "x", else: "report" }),
      report: task(ports({}, {}), { service: "mine" }),
      apart: task(ports({}, {})),
    },
  };
  const composition = { ...reads(), services: [{ id: "mine" }] };
  const { changes, node } = placeCopy(composition, "main", library, "align", { x: 10.4, y: 20.6 });
  const copied = after(composition, changes);
  expect(node).toBe("align-2");
  expect(graphOf(copied, "main")!.nodes[node]).toEqual({ workflow: "align-2", x: 10, y: 21 });
  expect(Object.keys(copied.workflows)).toHaveLength(4 + 5);
  const [count, choice, another] = Object.values(graphOf(copied, "align-2")!.nodes).map((n) => n.workflow);
  expect(workflowOf(copied, count!)!.body).toMatchObject({ action: { service: "bwa" } });
  expect(workflowOf(copied, another!)!.body).toMatchObject({ action: { run: "another" } });
  expect(workflowOf(copied, choice!)!.body).toMatchObject({ of: count, else: "report-2" });
  // What was there stays as it was, services as well.
  expect(workflowOf(copied, "count")).toEqual(composition.workflows["count"]);
  expect(servicesOf(copied)).toEqual([{ id: "mine" }, { id: "bwa" }]);
  expect(copied.values).toEqual(composition.values);
  expectRight(copied);
});

test("a workflow is not used within itself", () => {
  const composition = reads();
  composition.workflows["align"] = workflow({ kind: "graph", nodes: { n: { workflow: "count", x: 0, y: 0 } }, links: {} });
  expect(mayUse(composition, "align", "report")).toBe(true);
  expect(mayUse(composition, "align", "align")).toBe(false);
  expect(mayUse(composition, "count", "align")).toBe(false);
  composition.workflows["apart"] = workflow({ kind: "graph", nodes: {}, links: {} });
  expect(mayUse(composition, "apart", "main")).toBe(false);
});

test("a task of a service has its parameters as ports, each under a name of its own", () => {
  const { interface: own, body } = taskOfService({ id: "sort", parameters: [{ id: "file", type: "output" }, { id: "file", type: "input" }, { id: "n", type: "input", dataType: "integer" }] });
  expect(own).toEqual({ inputs: [{ id: "file", name: "file", type: "file" }, { id: "n", name: "n", type: "integer" }], outputs: [{ id: "file-2", name: "file-2", type: "file" }] });
  expect(body).toEqual({ kind: "task", action: { service: "sort" }, outputs: { "file-2": { parameter: "file" } } });
});

test("a new link has a name that says what it links, and that is free", () => {
  const composition = reads();
  const link = addLink(composition, "main", { node: "first", port: "bam" }, { port: "n" });
  expect(link).toMatchObject({ change: "add-link", id: "first-bam-n" });
  expect(addLink(apply(composition, link), "main", { node: "first", port: "bam" }, { port: "n" })).toMatchObject({ id: "first-bam-n-2" });
});
