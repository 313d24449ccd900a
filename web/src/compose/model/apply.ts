import type { Change, Composition, Graph, Workflow } from "./types";

function change(composition: Composition, id: string, to: (workflow: Workflow) => Workflow): Composition {
  const workflow = Object.hasOwn(composition.workflows, id) ? composition.workflows[id] : undefined;
  if (!workflow) return composition;
  return { ...composition, workflows: { ...composition.workflows, [id]: to(workflow) } };
}

function changeGraph(composition: Composition, id: string, to: (graph: Graph) => Graph): Composition {
  return change(composition, id, (w) => (w.body.kind === "graph" ? { ...w, body: { kind: "graph", ...to(w.body) } } : w));
}

function without<T>(record: Record<string, T>, key: string): Record<string, T> {
  const { [key]: _, ...rest } = record;
  return rest;
}

/** What a composition is after a change that the server has made. The composition itself stays as it is. */
export function apply(composition: Composition, made: Change): Composition {
  switch (made.change) {
    case "set-settings": {
      const { name, values, services, settings } = made;
      return { ...composition, name, values, services, settings };
    }
    case "add-workflow":
      return { ...composition, workflows: { ...composition.workflows, [made.id]: made.workflow } };
    case "remove-workflow":
      return { ...composition, workflows: without(composition.workflows, made.id) };
    case "set-about":
      return change(composition, made.workflow, (w) => ({ ...w, name: made.name, description: made.description }));
    case "set-interface":
      return change(composition, made.workflow, (w) => ({ ...w, interface: made.interface }));
    case "set-task":
      return change(composition, made.workflow, (w) => ({ ...w, body: { kind: "task", ...made.task } }));
    case "set-construct":
      return change(composition, made.workflow, (w) => ({ ...w, body: { kind: "construct", ...made.construct } }));
    case "set-body":
      return change(composition, made.workflow, (w) => ({ ...w, interface: made.interface, body: made.body }));
    case "add-node":
      return changeGraph(composition, made.workflow, (g) => ({ ...g, nodes: { ...g.nodes, [made.id]: made.node } }));
    case "remove-node":
      return changeGraph(composition, made.workflow, (g) => ({ ...g, nodes: without(g.nodes, made.id) }));
    case "set-node":
    case "move-node":
      return changeGraph(composition, made.workflow, (g) => {
        const node = g.nodes[made.id];
        if (!node) return g;
        const changed = made.change === "set-node" ? { ...node, label: made.label, after: made.after } : { ...node, x: made.x, y: made.y };
        return { ...g, nodes: { ...g.nodes, [made.id]: changed } };
      });
    case "add-link":
      return changeGraph(composition, made.workflow, (g) => ({ ...g, links: { ...g.links, [made.id]: made.link } }));
    case "remove-link":
      return changeGraph(composition, made.workflow, (g) => ({ ...g, links: without(g.links, made.id) }));
    case "replace":
      return made.composition;
  }
}
