/** Operations that people think of as one thing, made of several changes. */
import { apply } from "./apply";
import { closure, fits, graphOf, interfaceOf, portAt, uses, workflowOf } from "./read";
import type { Body, Change, Composition, Construct, ConstructName, End, Interface, Workflow } from "./types";

/** A name made of a text: letters, digits and dashes. */
export function slug(text: string, otherwise = "part"): string {
  const made = text
    .normalize("NFKD")
    .replace(/[\u0300-\u036f]/g, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 60);
  return made || otherwise;
}

/** A name that is not taken yet. */
export function freeName(wanted: string, taken: Iterable<string>): string {
  const known = new Set(taken);
  if (!known.has(wanted)) return wanted;
  let n = 2;
  while (known.has(`${wanted}-${n}`)) n += 1;
  return `${wanted}-${n}`;
}

/** Links that were right and are not any more after these changes go with them. */
export function repair(composition: Composition, changes: Change[]): Change[] {
  const after = changes.reduce(apply, composition);
  const gone: Change[] = [];
  for (const [workflow, { body }] of Object.entries(after.workflows)) {
    if (body.kind !== "graph") continue;
    for (const [id, link] of Object.entries(body.links)) {
      const from = portAt(after, workflow, link.from, "from");
      const to = portAt(after, workflow, link.to, "to");
      if (!from || !to || !fits(from.type, to.type)) gone.push({ change: "remove-link", workflow, id });
    }
  }
  return [...changes, ...gone];
}

/** Removes nodes with the links they have, what others wait for them, and workflows that nothing uses then. */
export function removeParts(composition: Composition, workflow: string, nodes: string[], links: string[]): Change[] {
  const graph = graphOf(composition, workflow);
  if (!graph) return [];
  const going = new Set(nodes.filter((n) => Object.hasOwn(graph.nodes, n)));
  const changes: Change[] = [];
  for (const [id, link] of Object.entries(graph.links)) {
    const hangs = [link.from.node, link.to.node].some((n) => n !== undefined && going.has(n));
    if (hangs || links.includes(id)) changes.push({ change: "remove-link", workflow, id });
  }
  for (const [id, node] of Object.entries(graph.nodes)) {
    const after = node.after ?? [];
    if (going.has(id) || !after.some((a) => going.has(a))) continue;
    changes.push({ change: "set-node", workflow, id, label: node.label ?? "", after: after.filter((a) => !going.has(a)) });
  }
  for (const id of going) changes.push({ change: "remove-node", workflow, id });
  return [...changes, ...sweep(changes.reduce(apply, composition))];
}

/** Removes workflows that nothing uses, and what only those have used. */
export function sweep(composition: Composition): Change[] {
  const changes: Change[] = [];
  let now = composition;
  for (;;) {
    const unused = Object.keys(now.workflows).find((id) => id !== now.root && uses(now, id) === 0);
    if (unused === undefined) return changes;
    changes.push({ change: "remove-workflow", id: unused });
    now = apply(now, changes.at(-1)!);
  }
}

export interface Spot {
  x: number;
  y: number;
}

/** Uses a workflow of the composition in a graph. */
export function placeWorkflow(composition: Composition, graph: string, used: string, at: Spot): { changes: Change[]; node: string } {
  const node = freeName(used, Object.keys(graphOf(composition, graph)?.nodes ?? {}));
  return { changes: [{ change: "add-node", workflow: graph, id: node, node: { workflow: used, ...round(at) } }], node };
}

/** Makes a workflow and uses it in a graph. */
export function placeNew(composition: Composition, graph: string, wanted: string, workflow: Workflow, at: Spot): { changes: Change[]; node: string } {
  const id = freeName(wanted, Object.keys(composition.workflows));
  const added: Change = { change: "add-workflow", id, workflow };
  const { changes, node } = placeWorkflow(apply(composition, added), graph, id, at);
  return { changes: [added, ...changes], node };
}

/** Uses a workflow of another composition: it is copied with everything it is made of. */
export function placeCopy(composition: Composition, graph: string, other: Composition, wanted: string, at: Spot): { changes: Change[]; node: string } {
  const names = new Map<string, string>();
  const taken = new Set(Object.keys(composition.workflows));
  for (const id of closure(other, wanted)) {
    const free = freeName(id, taken);
    names.set(id, free);
    taken.add(free);
  }
  const renamed = (id: string) => names.get(id) ?? id;
  const added: Change[] = [...names].map(([id, free]) => {
    const workflow = workflowOf(other, id)!;
    return { change: "add-workflow", id: free, workflow: { ...workflow, body: rename(workflow.body, renamed) } };
  });
  const services = missingServices(composition, other, names.keys());
  const { changes, node } = placeWorkflow(composition, graph, renamed(wanted), at);
  return { changes: [...services, ...added, ...changes], node };
}

function rename(body: Body, to: (id: string) => string): Body {
  switch (body.kind) {
    case "task":
      return body;
    case "graph":
      return { ...body, nodes: Object.fromEntries(Object.entries(body.nodes).map(([id, n]) => [id, { ...n, workflow: to(n.workflow) }])) };
    case "construct":
      return body.construct === "conditional" && body.else ? { ...body, of: to(body.of), else: to(body.else) } : { ...body, of: to(body.of) };
  }
}

/** Services that copied tasks use and that are written in the other composition come along. */
function missingServices(composition: Composition, other: Composition, copied: Iterable<string>): Change[] {
  const mine = servicesOf(composition);
  const needed = new Set<unknown>();
  for (const id of copied) {
    const body = workflowOf(other, id)?.body;
    if (body?.kind === "task") needed.add(body.action["service"]);
  }
  const missing = servicesOf(other).filter((s) => needed.has(s.id) && !mine.some((m) => m.id === s.id));
  if (missing.length === 0) return [];
  const { name, values = {}, settings = {} } = composition;
  return [{ change: "set-settings", name, values, settings, services: [...mine, ...missing] }];
}

export interface OwnService {
  id: string;
  name?: string;
  description?: string;
  parameters?: { id: string; type: string; dataType?: string }[];
}

/** Services that are written in the composition itself. */
export function servicesOf(composition: Composition): OwnService[] {
  const { services } = composition;
  return Array.isArray(services) ? services.filter((s): s is OwnService => typeof (s as OwnService | null)?.id === "string") : [];
}

/** A task that runs a service, with the parameters of the service as ports. */
export function taskOfService(service: OwnService): Workflow {
  const ports: Interface = { inputs: [], outputs: [] };
  const outputs: Record<string, { parameter: string }> = {};
  for (const { id, type, dataType = "file" } of service.parameters ?? []) {
    if (type === "input") ports.inputs.push({ id, name: id, type: dataType });
  }
  for (const { id, type, dataType = "file" } of service.parameters ?? []) {
    if (type !== "output") continue;
    const own = freeName(id, ports.inputs.map((p) => p.id));
    if (own !== id) outputs[own] = { parameter: id };
    ports.outputs.push({ id: own, name: own, type: dataType });
  }
  const named = Object.keys(outputs).length > 0 ? { outputs } : {};
  return { name: service.name || service.id, description: service.description ?? "", interface: ports, body: { kind: "task", action: { service: service.id }, ...named } };
}

export const EMPTY_TASK: Workflow = {
  name: "New task",
  interface: { inputs: [], outputs: [] },
  body: { kind: "task", action: { run: "true" } },
};

export const EMPTY_GRAPH: Workflow = {
  name: "New graph",
  interface: { inputs: [], outputs: [] },
  body: { kind: "graph", nodes: {}, links: {} },
};

/** A construct around a workflow with these ports, as it probably is meant, or why there cannot be one. */
export function constructAround(kind: ConstructName, of: string, ports: Interface): Construct | string {
  const [output, ...more] = ports.outputs;
  const feeds = (port: { type: string }) => output !== undefined && more.length === 0 && fits(output.type, port.type);
  switch (kind) {
    case "map":
      return ports.inputs.length > 0 ? { of, construct: "map" } : "It has no inputs to go through.";
    case "reduce": {
      const carry = ports.inputs.find(feeds);
      const element = ports.inputs.find((p) => p !== carry);
      if (!carry || !element) return "It needs one output that can go into one of at least two inputs.";
      return { of, construct: "reduce", carry: carry.id, element: element.id };
    }
    case "tree": {
      const left = ports.inputs.find((p) => feeds(p) && ports.inputs.some((q) => q !== p && q.type === p.type));
      const right = ports.inputs.find((p) => p !== left && p.type === left?.type);
      if (!left || !right) return "It needs two inputs of one type, and one output that can go into them.";
      return { of, construct: "tree", left: left.id, right: right.id };
    }
    case "conditional": {
      const [first] = ports.inputs;
      return first ? { of, construct: "conditional", when: `{${first.id}} != ""` } : "It has no inputs to look at.";
    }
    case "loop": {
      const feedback: Record<string, string> = {};
      for (const out of ports.outputs) {
        const into = ports.inputs.find((p) => fits(out.type, p.type) && !Object.values(feedback).includes(p.id));
        if (!into) return `Its output “${out.name}” cannot go into any of its inputs.`;
        feedback[out.id] = into.id;
      }
      const [first] = ports.inputs;
      if (!first || ports.outputs.length === 0) return "It needs inputs and outputs.";
      return { of, construct: "loop", while: `{${first.id}} != ""`, feedback, max: 10 };
    }
    case "curry":
      return ports.inputs.length > 0 ? { of, construct: "curry", with: {} } : "It has no inputs that could be fixed.";
  }
}

/** Puts a construct around the workflow that a node uses, and keeps the links that still fit. */
export function wrapNode(composition: Composition, graph: string, node: string, kind: ConstructName): Change[] | string {
  const used = graphOf(composition, graph)?.nodes[node];
  if (!used) return "There is no such node.";
  const construct = constructAround(kind, used.workflow, interfaceOf(composition, used.workflow));
  if (typeof construct === "string") return construct;
  const id = freeName(`${used.workflow}-${kind}`, Object.keys(composition.workflows));
  return repair(composition, [
    { change: "add-workflow", id, workflow: { name: "", interface: { inputs: [], outputs: [] }, body: { kind: "construct", ...construct } } },
    { change: "remove-node", workflow: graph, id: node },
    { change: "add-node", workflow: graph, id: node, node: { ...used, workflow: id } },
  ]);
}

/** Takes the outermost construct away from a node, and keeps the links that still fit. */
export function unwrapNode(composition: Composition, graph: string, node: string): Change[] | null {
  const used = graphOf(composition, graph)?.nodes[node];
  const body = used && workflowOf(composition, used.workflow)?.body;
  if (!used || body?.kind !== "construct") return null;
  return replaceUse(composition, graph, node, body.of);
}

/** Lets a node use another workflow, and keeps the links that still fit. */
export function replaceUse(composition: Composition, graph: string, node: string, workflow: string): Change[] | null {
  const used = graphOf(composition, graph)?.nodes[node];
  if (!used || used.workflow === workflow) return null;
  const changes = repair(composition, [
    { change: "remove-node", workflow: graph, id: node },
    { change: "add-node", workflow: graph, id: node, node: { ...used, workflow } },
  ]);
  return [...changes, ...sweep(changes.reduce(apply, composition))];
}

/** Gives a node its own copy of the workflow it uses, so that other places stay as they are. */
export function ownCopy(composition: Composition, graph: string, node: string): Change[] | null {
  const used = graphOf(composition, graph)?.nodes[node];
  const workflow = used && workflowOf(composition, used.workflow);
  if (!used || !workflow) return null;
  const id = freeName(used.workflow, Object.keys(composition.workflows));
  return [
    { change: "add-workflow", id, workflow },
    { change: "remove-node", workflow: graph, id: node },
    { change: "add-node", workflow: graph, id: node, node: { ...used, workflow: id } },
  ];
}

export function addLink(composition: Composition, workflow: string, from: End, to: End): Change {
  const wanted = slug(`${from.node ?? ""}-${from.port}-${to.node ?? ""}-${to.port}`, "link");
  const id = freeName(wanted, Object.keys(graphOf(composition, workflow)?.links ?? {}));
  return { change: "add-link", workflow, id, link: { from, to } };
}

/** Whether a workflow may be used in a graph without being made of itself. */
export function mayUse(composition: Composition, graph: string, used: string): boolean {
  return used !== composition.root && !closure(composition, used).has(graph);
}

export function round({ x, y }: Spot): Spot {
  return { x: Math.round(x), y: Math.round(y) };
}
