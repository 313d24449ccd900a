import { graphOf, nameOf, operands, workflowOf } from "./read";
import type { Change, Composition } from "./types";

/** Names of the parts of a composition that can be locked. */
export const place = {
  settings: "settings",
  workflow: (w: string) => `workflows/${w}`,
  about: (w: string) => `workflows/${w}/about`,
  interface: (w: string) => `workflows/${w}/interface`,
  task: (w: string) => `workflows/${w}/task`,
  construct: (w: string) => `workflows/${w}/construct`,
  how: (w: string) => `workflows/${w}/construct/how`,
  node: (w: string, n: string) => `workflows/${w}/nodes/${n}`,
  properties: (w: string, n: string) => `workflows/${w}/nodes/${n}/properties`,
  link: (w: string, l: string) => `workflows/${w}/links/${l}`,
};

/** The workflow a part belongs to. */
export function workflowOfPlace(unit: string): string | undefined {
  const [first, workflow] = unit.split("/");
  return first === "workflows" ? workflow : undefined;
}

/** Whether a part is another one, or within it as its name says. */
export function isWithin(unit: string, whole: string): boolean {
  return unit === whole || unit.startsWith(`${whole}/`);
}

/** A part in words, for people. */
export function describePlace(composition: Composition, unit: string): string {
  const [first, w = "", kind, id = ""] = unit.split("/");
  if (first !== "workflows") return "the settings";
  const name = nameOf(composition, w);
  switch (kind) {
    case undefined:
      return name;
    case "about":
      return `the description of ${name}`;
    case "interface":
      return `the ports of ${name}`;
    case "task":
      return `the task of ${name}`;
    case "construct":
      return `the construct of ${name}`;
    case "nodes":
      return `${graphOf(composition, w)?.nodes[id]?.label || id} inside ${name}`;
    default:
      return `the link ${id} inside ${name}`;
  }
}

/** What is at a part now, as the change that would make it so. Drafts of a part have the same form. */
export function contentOf(composition: Composition, unit: string): Change | null {
  const [first, w = "", kind, id = ""] = unit.split("/");
  if (first === "settings") {
    const { name, values = {}, services = null, settings = {} } = composition;
    return { change: "set-settings", name, values, services, settings };
  }
  const workflow = workflowOf(composition, w);
  if (!workflow) return null;
  const { body } = workflow;
  switch (kind) {
    case "about":
      return { change: "set-about", workflow: w, name: workflow.name, description: workflow.description ?? "" };
    case "interface":
      return { change: "set-interface", workflow: w, interface: workflow.interface };
    case "task": {
      if (body.kind !== "task") return null;
      const { kind: _, ...task } = body;
      return { change: "set-task", workflow: w, task };
    }
    case "construct": {
      if (body.kind !== "construct") return null;
      const { kind: _, ...construct } = body;
      return { change: "set-construct", workflow: w, construct };
    }
    case "nodes": {
      const node = body.kind === "graph" ? body.nodes[id] : undefined;
      return node ? { change: "set-node", workflow: w, id, label: node.label ?? "", after: node.after ?? [] } : null;
    }
    default:
      return null;
  }
}

/** One step of the way to a workflow: the root, a node of the graph before, or what the construct before is applied to. */
export interface Step {
  workflow: string;
  /** The node it was entered by. */
  node?: string;
  /** The operand of a construct it was entered by. */
  operand?: "of" | "else";
}

/** The step into what a node uses, or what a construct is applied to. */
export function stepInto(composition: Composition, at: string, id: string): Step | null {
  const body = workflowOf(composition, at)?.body;
  if (body?.kind === "graph") {
    const node = Object.hasOwn(body.nodes, id) ? body.nodes[id] : undefined;
    return node ? { workflow: node.workflow, node: id } : null;
  }
  if (body?.kind !== "construct") return null;
  if (id === "else") return body.construct === "conditional" && body.else ? { workflow: body.else, operand: "else" } : null;
  return { workflow: body.of, operand: "of" };
}

/** The way from the root as parts, for locks: what was passed, in order. */
export function pathOf(trail: Step[]): string[] {
  const path: string[] = [];
  trail.forEach((step, i) => {
    const before = trail[i - 1];
    if (before && step.node !== undefined) path.push(place.node(before.workflow, step.node));
    else if (before) path.push(place.construct(before.workflow));
    path.push(place.workflow(step.workflow));
  });
  return path;
}

/** The way to a part of the workflow where a trail ends, without the part itself. */
export function pathTo(trail: Step[], unit: string): string[] {
  const path = pathOf(trail);
  if (path.at(-1) === unit) return path.slice(0, -1);
  const [, , kind, , last] = unit.split("/");
  if (kind === "construct" && unit.endsWith("/how")) path.push(unit.slice(0, -"/how".length));
  if (kind === "nodes" && last === "properties") path.push(unit.slice(0, -"/properties".length));
  return path;
}

/** Follows a trail in a composition that may have changed, as far as it still goes. */
export function follow(composition: Composition, trail: Step[]): Step[] {
  const kept: Step[] = [{ workflow: composition.root }];
  for (const step of trail.slice(1)) {
    const at = kept.at(-1)!.workflow;
    const body = workflowOf(composition, at)?.body;
    let next: string | undefined;
    if (body?.kind === "graph" && step.node !== undefined && Object.hasOwn(body.nodes, step.node)) next = body.nodes[step.node]?.workflow;
    if (body?.kind === "construct" && step.operand) next = step.operand === "of" ? body.of : operands(body)[1];
    if (next === undefined || !workflowOf(composition, next)) break;
    kept.push({ ...step, workflow: next });
  }
  return kept;
}

/** A trail as it stands in the address, and back. */
export function writeTrail(trail: Step[]): string {
  return trail
    .slice(1)
    .map((s) => (s.node !== undefined ? s.node : `.${s.operand}`))
    .join("~");
}

export function readTrail(composition: Composition, text: string | null): Step[] {
  const steps = (text ?? "").split("~").filter(Boolean);
  const wanted: Step[] = steps.map((s) => (s.startsWith(".") ? { workflow: "", operand: s === ".else" ? "else" : "of" } : { workflow: "", node: s }));
  return follow(composition, [{ workflow: composition.root }, ...wanted]);
}

/** A way to a workflow that somebody did not come to: the first one found. */
export function findTrail(composition: Composition, workflow: string): Step[] {
  const open: Step[][] = [[{ workflow: composition.root }]];
  const seen = new Set<string>();
  for (let trail = open.shift(); trail; trail = open.shift()) {
    const at = trail.at(-1)!.workflow;
    if (at === workflow) return trail;
    if (seen.has(at)) continue;
    seen.add(at);
    const body = workflowOf(composition, at)?.body;
    if (body?.kind === "graph") {
      for (const [node, { workflow: used }] of Object.entries(body.nodes)) open.push([...trail, { workflow: used, node }]);
    } else if (body?.kind === "construct") {
      operands(body).forEach((used, i) => open.push([...trail, { workflow: used, operand: i === 0 ? "of" : "else" }]));
    }
  }
  return [{ workflow: composition.root }];
}
