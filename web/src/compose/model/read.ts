import type { Body, Composition, Construct, End, Graph, Interface, Port, Workflow } from "./types";

const NOTHING: Interface = { inputs: [], outputs: [] };
const VALUES = new Set(["value", "string", "integer", "float", "number", "boolean"]);

/** A workflow by its id. Ids come from others, so names of a prototype must not be found. */
export function workflowOf(composition: Composition, id: string): Workflow | undefined {
  return Object.hasOwn(composition.workflows, id) ? composition.workflows[id] : undefined;
}

export function graphOf(composition: Composition, id: string): Graph | undefined {
  const body = workflowOf(composition, id)?.body;
  return body?.kind === "graph" ? body : undefined;
}

/** What people call a workflow. */
export function nameOf(composition: Composition, id: string): string {
  return workflowOf(composition, id)?.name || id;
}

/** Whether something of a type can go where another is wanted. Says the same as the server does. */
export function fits(from: string, to: string): boolean {
  const a = from.trim();
  const b = to.trim();
  const inner = (type: string) => (type.startsWith("[") && type.endsWith("]") ? type.slice(1, -1).trim() : null);
  const [ia, ib] = [inner(a), inner(b)];
  if (ia !== null && ib !== null) return fits(ia, ib);
  if (a === "directory" && ib !== null) return fits("file", ib);
  if (a === "integer" && (b === "number" || b === "float")) return true;
  if (VALUES.has(a) && (b === "string" || b === "value")) return true;
  return a === b || a === "any" || b === "any";
}

/** Whether a text is a type. */
export function isType(text: string): boolean {
  const trimmed = text.trim();
  if (trimmed.startsWith("[")) return trimmed.endsWith("]") && isType(trimmed.slice(1, -1));
  return /^[A-Za-z0-9_\-./+]+$/.test(trimmed);
}

/** Whether a text can name a workflow, a port, a node or a link. */
export function isName(text: string): boolean {
  return /^[\p{Alphabetic}\p{N}_-]+$/u.test(text);
}

/** The workflows a body refers to, once for each reference. */
export function operands(body: Body): string[] {
  switch (body.kind) {
    case "task":
      return [];
    case "graph":
      return Object.values(body.nodes).map((n) => n.workflow);
    case "construct":
      return body.construct === "conditional" && body.else ? [body.of, body.else] : [body.of];
  }
}

/** How often workflows refer to this one. */
export function uses(composition: Composition, id: string): number {
  let count = 0;
  for (const workflow of Object.values(composition.workflows)) {
    for (const operand of operands(workflow.body)) if (operand === id) count += 1;
  }
  return count;
}

/** A workflow and everything it is made of. */
export function closure(composition: Composition, id: string): Set<string> {
  const found = new Set<string>();
  const open = [id];
  while (open.length > 0) {
    const next = open.pop()!;
    const workflow = workflowOf(composition, next);
    if (!workflow || found.has(next)) continue;
    found.add(next);
    open.push(...operands(workflow.body));
  }
  return found;
}

/** The ports of a workflow. Those of a construct follow from what it is applied to. */
export function interfaceOf(composition: Composition, id: string, depth = 64): Interface {
  const workflow = workflowOf(composition, id);
  if (!workflow || depth === 0) return NOTHING;
  if (workflow.body.kind !== "construct") return workflow.interface;
  return constructInterface(workflow.body, interfaceOf(composition, workflow.body.of, depth - 1));
}

/** The ports of a construct that is applied to something with these ports. */
export function constructInterface(how: Construct, base: Interface): Interface {
  const listed = (port: Port, is: boolean): Port => (is ? { ...port, type: `[${port.type}]` } : port);
  switch (how.construct) {
    case "map": {
      const over = how.over ?? [];
      return {
        inputs: base.inputs.map((p) => listed(p, over.length === 0 || over.includes(p.id))),
        outputs: base.outputs.map((p) => listed(p, true)),
      };
    }
    case "reduce":
      return { ...base, inputs: base.inputs.map((p) => listed(p, p.id === how.element)) };
    case "tree":
      return { ...base, inputs: base.inputs.filter((p) => p.id !== how.right).map((p) => listed(p, p.id === how.left)) };
    case "conditional":
    case "loop":
      return base;
    case "curry":
      return { ...base, inputs: base.inputs.filter((p) => !Object.hasOwn(how.with, p.id)) };
  }
}

/** The port at an end of a link; seen from inside, what goes into a workflow comes out of its border. */
export function portAt(composition: Composition, workflow: string, end: End, side: "from" | "to"): Port | undefined {
  const of = end.node === undefined ? workflow : graphOf(composition, workflow)?.nodes[end.node]?.workflow;
  if (of === undefined) return undefined;
  const ports = interfaceOf(composition, of);
  const isSource = side === "from";
  const list = (end.node === undefined) === isSource ? ports.inputs : ports.outputs;
  return list.find((p) => p.id === end.port);
}

/** `node.port`, or the port of the workflow itself. */
export function endText(end: End): string {
  return end.node === undefined ? end.port : `${end.node}.${end.port}`;
}

/** Why two ends cannot be linked, if they cannot. */
export function linkProblem(composition: Composition, workflow: string, from: End, to: End): string | null {
  const graph = graphOf(composition, workflow);
  const a = portAt(composition, workflow, from, "from");
  const b = portAt(composition, workflow, to, "to");
  if (!graph || !a || !b) return "There is no such port.";
  if (from.node !== undefined && from.node === to.node) return "A node cannot be linked to itself.";
  if (!fits(a.type, b.type)) return `“${a.name}” gives ${a.type}, but “${b.name}” takes ${b.type}.`;
  const taken = Object.values(graph.links).find((l) => l.to.node === to.node && l.to.port === to.port);
  if (taken) return `“${b.name}” already comes from ${endText(taken.from)}; remove that link first.`;
  if (from.node !== undefined && to.node !== undefined && reaches(graph, to.node, from.node)) {
    return `“${from.node}” already needs “${to.node}”; they would wait for each other.`;
  }
  return null;
}

/** Whether what a node gives, or its end, is needed by another node. */
export function reaches(graph: Graph, from: string, to: string): boolean {
  const next = new Map<string, Set<string>>();
  const add = (a: string, b: string) => next.set(a, (next.get(a) ?? new Set()).add(b));
  for (const link of Object.values(graph.links)) if (link.from.node && link.to.node) add(link.from.node, link.to.node);
  for (const [id, node] of Object.entries(graph.nodes)) for (const after of node.after ?? []) add(after, id);
  const seen = new Set<string>();
  const open = [from];
  while (open.length > 0) {
    const id = open.pop()!;
    if (id === to) return true;
    if (seen.has(id)) continue;
    seen.add(id);
    open.push(...(next.get(id) ?? []));
  }
  return false;
}

/** The constructs around what a workflow is in the end, outermost first, and that. */
export function stackOf(composition: Composition, id: string): { constructs: Construct[]; base: string } {
  const constructs: Construct[] = [];
  let at = id;
  for (let depth = 0; depth < 64; depth += 1) {
    const body = workflowOf(composition, at)?.body;
    if (body?.kind !== "construct") break;
    constructs.push(body);
    at = body.of;
  }
  return { constructs, base: at };
}
