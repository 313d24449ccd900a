import { expect, test } from "@playwright/test";
import { apply } from "../../src/compose/model/apply";
import { contentOf, findTrail, follow, pathOf, pathTo, readTrail, writeTrail } from "../../src/compose/model/place";
import { isUnplaced, placeInLayers } from "../../src/compose/model/placement";
import { closure, constructInterface, fits, graphOf, interfaceOf, isName, isType, linkProblem, reaches, workflowOf } from "../../src/compose/model/read";
import { touched } from "../../src/compose/model/touched";
import type { Change, Composition } from "../../src/compose/model/types";
import { contentText, operationWords, plain, readValue, valueText } from "../../src/compose/model/words";
import { ports, reads, task, workflow } from "./compositions";

test("types fit as they do for the server", () => {
  const good = ["file file", "integer number", "integer float", "integer string", "boolean value", "any file", "file any", "[file] [file]", "[integer] [string]", "directory [file]", "directory [any]", "[file] any", " file  file", "bam bam"];
  const bad = ["file directory", "number integer", "float number", "string integer", "file [file]", "[file] file", "[file] directory", "directory file", "directory [string]", "[integer] string", "bam file", "file string"];
  for (const pair of good) expect(fits(...pair.trim().split(/ +/) as [string, string]), pair).toBe(true);
  for (const pair of bad) expect(fits(...pair.split(" ") as [string, string]), pair).toBe(false);
});

test("what is a type and what is a name is known", () => {
  for (const type of ["file", "[file]", "[[image/png]]", " [ string ] "]) expect(isType(type), type).toBe(true);
  for (const type of ["", "[file", "file]", "a b", "[]"]) expect(isType(type), type).toBe(false);
  expect(isName("größe-2_b")).toBe(true);
  for (const name of ["", "a b", "a/b", "a.b", "~"]) expect(isName(name), name).toBe(false);
});

test("the ports of a construct follow from what it is applied to", () => {
  const base = ports({ a: "file", b: "file", n: "integer" }, { out: "file" });
  const types = (construct: Parameters<typeof constructInterface>[0]) => {
    const { inputs, outputs } = constructInterface(construct, base);
    return [...inputs.map((p) => `${p.id} ${p.type}`), "→", ...outputs.map((p) => p.type)].join(" ");
  };
  expect(types({ of: "x", construct: "map" })).toBe("a [file] b [file] n [integer] → [file]");
  expect(types({ of: "x", construct: "map", over: ["a"] })).toBe("a [file] b file n integer → [file]");
  expect(types({ of: "x", construct: "reduce", carry: "a", element: "b" })).toBe("a file b [file] n integer → file");
  expect(types({ of: "x", construct: "tree", left: "a", right: "b" })).toBe("a [file] n integer → file");
  expect(types({ of: "x", construct: "curry", with: { n: 3 } })).toBe("a file b file → file");
  expect(types({ of: "x", construct: "conditional", when: "true" })).toBe("a file b file n integer → file");
  expect(types({ of: "x", construct: "loop", while: "true", feedback: {}, max: 3 })).toBe("a file b file n integer → file");
});

test("constructs around each other end somewhere, and names of a prototype are nothing", () => {
  const round: Composition = { name: "", root: "a", workflows: { a: workflow({ kind: "construct", of: "b", construct: "map" }), b: workflow({ kind: "construct", of: "a", construct: "map" }) } };
  expect(interfaceOf(round, "a")).toEqual({ inputs: [], outputs: [] });
  expect(closure(round, "a")).toEqual(new Set(["a", "b"]));
  expect(workflowOf(round, "constructor")).toBeUndefined();
  expect(workflowOf(round, "__proto__")).toBeUndefined();
});

test("a link is only possible where types fit, ports are free and nothing goes round", () => {
  const composition = reads();
  const link = (from: [string | undefined, string], to: [string | undefined, string]) =>
    linkProblem(composition, "main", { node: from[0], port: from[1] }, { node: to[0], port: to[1] });
  expect(link(["first", "bam"], ["second", "bam"])).toContain("already comes from first.bam");
  expect(link([undefined, "reads"], [undefined, "n"])).toContain("gives file, but “n” takes integer");
  expect(link(["first", "nothing"], ["second", "bam"])).toBe("There is no such port.");
  expect(link(["first", "bam"], ["first", "reads"])).toBe("A node cannot be linked to itself.");
  const graph = graphOf(composition, "main")!;
  delete graph.links["in"];
  delete graph.links["between"];
  expect(link([undefined, "reads"], ["first", "reads"])).toBeNull();
  expect(link(["first", "bam"], ["second", "bam"])).toBeNull();
  graph.nodes["first"]!.after = ["report"];
  expect(link(["first", "bam"], ["second", "bam"])).toContain("they would wait for each other");
  expect(reaches(graph, "second", "first")).toBe(true);
  expect(reaches(graph, "first", "second")).toBe(false);
});

/** Every kind of change once, what it does as the server does it, and the parts it touches. */
const CHANGES: { change: Change; to: (c: Composition) => void; units: string[] }[] = [
  {
    change: { change: "set-settings", name: "New", values: { reads: "b.fq" }, services: [{ id: "s" }], settings: { retries: 2 } },
    to: (c) => Object.assign(c, { name: "New", values: { reads: "b.fq" }, services: [{ id: "s" }], settings: { retries: 2 } }),
    units: ["settings"],
  },
  { change: { change: "add-workflow", id: "new", workflow: task(ports({}, {})) }, to: (c) => (c.workflows["new"] = task(ports({}, {}))), units: ["workflows/new"] },
  { change: { change: "remove-workflow", id: "report" }, to: (c) => delete c.workflows["report"], units: ["workflows/report"] },
  {
    change: { change: "set-about", workflow: "align", name: "Align", description: "Aligns." },
    to: (c) => Object.assign(c.workflows["align"]!, { name: "Align", description: "Aligns." }),
    units: ["workflows/align/about"],
  },
  {
    change: { change: "set-interface", workflow: "align", interface: ports({ x: "file" }, {}) },
    to: (c) => (c.workflows["align"]!.interface = ports({ x: "file" }, {})),
    units: ["workflows/align/interface"],
  },
  {
    change: { change: "set-task", workflow: "align", task: { action: { run: "bwa" } } },
    to: (c) => (c.workflows["align"]!.body = { kind: "task", action: { run: "bwa" } }),
    units: ["workflows/align/task"],
  },
  {
    change: { change: "set-construct", workflow: "mapped", construct: { of: "count", construct: "map", over: ["bam"] } },
    to: (c) => (c.workflows["mapped"]!.body = { kind: "construct", of: "count", construct: "map", over: ["bam"] }),
    units: ["workflows/mapped/construct/how"],
  },
  {
    change: { change: "set-body", workflow: "align", interface: ports({ y: "file" }, {}), body: { kind: "graph", nodes: { n: { workflow: "count", x: 0, y: 0 } }, links: {} } },
    to: (c) => Object.assign(c.workflows["align"]!, { interface: ports({ y: "file" }, {}), body: { kind: "graph", nodes: { n: { workflow: "count", x: 0, y: 0 } }, links: {} } }),
    units: ["workflows/align", "workflows/align/about", "workflows/align/interface", "workflows/align/nodes/n", "workflows/align/nodes/n/properties"],
  },
  {
    change: { change: "add-node", workflow: "main", id: "extra", node: { workflow: "count", x: 1, y: 2 } },
    to: (c) => (graphOf(c, "main")!.nodes["extra"] = { workflow: "count", x: 1, y: 2 }),
    units: ["workflows/main/nodes/extra"],
  },
  // The server leaves links alone: who removes a node removes them as well.
  { change: { change: "remove-node", workflow: "main", id: "first" }, to: (c) => delete graphOf(c, "main")!.nodes["first"], units: ["workflows/main/nodes/first"] },
  {
    change: { change: "set-node", workflow: "main", id: "second", label: "", after: ["first"] },
    to: (c) => Object.assign(graphOf(c, "main")!.nodes["second"]!, { label: "", after: ["first"] }),
    units: ["workflows/main/nodes/second/properties"],
  },
  { change: { change: "move-node", workflow: "main", id: "second", x: 7, y: 8 }, to: (c) => Object.assign(graphOf(c, "main")!.nodes["second"]!, { x: 7, y: 8 }), units: [] },
  {
    change: { change: "add-link", workflow: "main", id: "more", link: { from: { port: "a" }, to: { port: "b" } } },
    to: (c) => (graphOf(c, "main")!.links["more"] = { from: { port: "a" }, to: { port: "b" } }),
    units: ["workflows/main/links/more"],
  },
  { change: { change: "remove-link", workflow: "main", id: "between" }, to: (c) => delete graphOf(c, "main")!.links["between"], units: ["workflows/main/links/between"] },
  {
    change: { change: "replace", composition: { name: "Other", root: "r", workflows: { r: task(ports({}, {})), c: workflow({ kind: "construct", of: "r", construct: "map" }) } } },
    to: (c) => {
      for (const key of Object.keys(c)) delete (c as unknown as Record<string, unknown>)[key];
      Object.assign(c, { name: "Other", root: "r", workflows: { r: task(ports({}, {})), c: workflow({ kind: "construct", of: "r", construct: "map" }) } });
    },
    units: ["settings", "workflows/r", "workflows/r/about", "workflows/r/interface", "workflows/r/task", "workflows/c", "workflows/c/about", "workflows/c/construct", "workflows/c/construct/how"],
  },
];

function start(): Composition {
  const composition = reads();
  composition.workflows["mapped"] = workflow({ kind: "construct", of: "count", construct: "map" });
  return composition;
}

for (const { change, to, units } of CHANGES) {
  test(`“${change.change}” does here what it does on the server, and leaves what was there before`, () => {
    const before = start();
    const expected = start();
    to(expected);
    const after = apply(before, change);
    expect(after).toEqual(expected);
    expect(before).toEqual(start());
    expect(touched([change], after).sort()).toEqual([...units].sort());
  });
}

test("what is at a part is the change that makes it so", () => {
  const composition = start();
  for (const unit of ["settings", "workflows/align/about", "workflows/align/interface", "workflows/align/task", "workflows/mapped/construct/how", "workflows/main/nodes/second/properties"]) {
    const content = contentOf(composition, unit)!;
    const after = apply(composition, content);
    expect(contentOf(after, unit), unit).toEqual(content);
    expect(touched([content], after), unit).toEqual([unit]);
  }
  for (const unit of ["workflows/gone/task", "workflows/main/task", "workflows/align/construct/how", "workflows/main/nodes/gone/properties", "workflows/constructor/about"]) {
    expect(contentOf(composition, unit), unit).toBeNull();
  }
});

test("the way to a part names everything that was passed", () => {
  const composition = start();
  graphOf(composition, "main")!.nodes["all"] = { workflow: "mapped", x: 0, y: 0 };
  const trail = findTrail(composition, "count");
  expect(trail.map((s) => s.workflow)).toEqual(["main", "count"]);
  delete graphOf(composition, "main")!.nodes["second"];
  const through = findTrail(composition, "count");
  expect(pathOf(through)).toEqual(["workflows/main", "workflows/main/nodes/all", "workflows/mapped", "workflows/mapped/construct", "workflows/count"]);
  expect(pathTo(through.slice(0, 2), "workflows/mapped/construct/how").at(-1)).toBe("workflows/mapped/construct");
  expect(pathTo([{ workflow: "main" }], "workflows/main/nodes/all/properties")).toEqual(["workflows/main", "workflows/main/nodes/all"]);
  expect(pathTo([{ workflow: "main" }], "workflows/main")).toEqual([]);
  expect(writeTrail(through)).toBe("all~.of");
  expect(readTrail(composition, "all~.of")).toEqual(through);
  expect(readTrail(composition, "all~.else").map((s) => s.workflow)).toEqual(["main", "mapped"]);
  delete graphOf(composition, "main")!.nodes["all"];
  expect(follow(composition, through)).toEqual([{ workflow: "main" }]);
});

test("nodes that nobody has placed stand in layers, after what they need", () => {
  const composition = reads();
  const graph = graphOf(composition, "main")!;
  expect(isUnplaced(graph)).toBe(false);
  for (const node of Object.values(graph.nodes)) node.x = 0;
  expect(isUnplaced(graph)).toBe(true);
  const placed = placeInLayers(composition, graph);
  expect(placed.get("first")!.x).toBeLessThan(placed.get("second")!.x);
  expect(placed.get("second")!.x).toBeLessThan(placed.get("report")!.x);
  // What goes round does not hang.
  graph.nodes["first"]!.after = ["report"];
  expect(placeInLayers(composition, graph).size).toBe(3);
});

test("an operation is told by what matters most", () => {
  const composition = reads();
  const [add, remove] = [CHANGES.find((c) => c.change.change === "add-node")!.change, CHANGES.find((c) => c.change.change === "remove-link")!.change];
  expect(operationWords(composition, [remove, add])).toBe("added “extra” to “main”, and 1 more change");
  expect(operationWords(composition, [remove], "undo 4")).toBe("took back 4: removed the link “between” in “main”");
  expect(operationWords(composition, [], "note")).toBe("note");
  expect(contentText(null)).toBe("It is not there any more.");
  expect(contentText({ change: "set-task", workflow: "w", task: { action: { run: "ls" } } })).toBe("ls");
  expect(plain("no *node* in `main`, 2 * 3")).toBe("no “node” in “main”, 2 * 3");
});

test("a value can be typed and read again as what it is", () => {
  for (const [value, type] of [["12", "string"], ["true", "any"], [12, "integer"], [[1, "a"], "[any]"], ["plain words", "any"], ["{", "file"], [null, "any"], [false, "boolean"]] as const) {
    expect(readValue(valueText(value, type), type), `${JSON.stringify(value)} as ${type}`).toEqual(value);
  }
  expect(valueText(undefined, "string")).toBe("");
});
