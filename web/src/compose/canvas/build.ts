import { MarkerType, type Edge, type Node } from "@xyflow/react";
import type { Lock, View } from "../live/room";
import { isUnplaced, NODE_WIDTH, placeInLayers } from "../model/placement";
import { isWithin, place, workflowOfPlace } from "../model/place";
import { closure, graphOf, interfaceOf, nameOf, stackOf, uses, workflowOf } from "../model/read";
import type { Composition, Construct, Interface, Port } from "../model/types";
import type { Flaw, Selection } from "../studio";

/** A use of a workflow, as it is drawn. */
export interface UseData extends Record<string, unknown> {
  id: string;
  title: string;
  /** What it uses, if the node has a label of its own. */
  subtitle: string;
  kind: "task" | "graph" | "construct";
  constructs: Construct[];
  ports: Interface;
  places: number;
  locks: Lock[];
  flaws: string[];
  /** Ports of this workflow are locked. */
  portLock: Lock | null;
  isFixed: boolean;
  /** What the task runs, where that is all there is to see. */
  script: string | null;
}

export interface BorderData extends Record<string, unknown> {
  side: "in" | "out";
  ports: Port[];
  portLock: Lock | null;
}

interface LinkData extends Record<string, unknown> {
  lock: Lock | null;
}

export type CanvasNode = Node<UseData, "use"> | Node<BorderData, "border">;
export type CanvasEdge = Edge<LinkData>;

export const NODE = "n:";
export const LINK = "l:";
export const IN = "border-in";
export const OUT = "border-out";

interface Shown {
  nodes: CanvasNode[];
  edges: CanvasEdge[];
}

/** The graph of a workflow as nodes and edges. A task or a construct is shown as what it is made of. */
export function build(view: View, workflow: string, selection: Selection, flaws: Flaw[]): Shown {
  const { composition } = view;
  const graph = graphOf(composition, workflow);
  const others = view.locks;
  const nodes: CanvasNode[] = [];
  const edges: CanvasEdge[] = [];
  const own = interfaceOf(composition, workflow);

  // Many nodes may use the same workflow.
  const about = remembered((used: string) => ({
    inside: closure(composition, used),
    stack: stackOf(composition, used),
    ports: interfaceOf(composition, used),
    places: uses(composition, used),
  }));
  const use = (id: string, used: string, label: string, at: { x: number; y: number }, fixed: boolean): CanvasNode => {
    const node = place.node(workflow, id);
    const { inside, stack, ports, places } = about(used);
    const { constructs, base } = stack;
    const name = nameOf(composition, used) === used && constructs.length > 0 ? nameOf(composition, base) : nameOf(composition, used);
    const body = workflowOf(composition, used)?.body;
    const isHere = (l: Lock) => isWithin(l.unit, node) || inside.has(workflowOfPlace(l.unit) ?? "");
    return {
      id: NODE + id,
      type: "use",
      position: at,
      selected: selection.nodes.includes(id),
      draggable: !fixed,
      ariaLabel: `Node ${label || name}`,
      data: {
        id,
        title: label || name,
        subtitle: label ? name : "",
        kind: body?.kind ?? "task",
        constructs,
        ports,
        places,
        locks: others.filter(isHere),
        flaws: flaws.filter((f) => isWithin(f.place, `workflows/${workflow}/graph/nodes/${id}`)).map((f) => f.message),
        portLock: others.find((l) => l.unit === place.interface(base)) ?? null,
        isFixed: fixed,
        script: null,
      },
    };
  };

  const positions = positionsOf(composition, workflow);
  const body = workflowOf(composition, workflow)?.body;
  if (graph) {
    for (const [id, node] of Object.entries(graph.nodes)) {
      nodes.push(use(id, node.workflow, node.label ?? "", positions.get(id) ?? node, false));
      for (const after of node.after ?? []) {
        if (!Object.hasOwn(graph.nodes, after)) continue;
        edges.push({
          id: `a:${after}:${id}`,
          source: NODE + after,
          target: NODE + id,
          sourceHandle: "after",
          targetHandle: "after",
          type: "link",
          className: "after",
          selectable: false,
          focusable: false,
          ariaLabel: `${id} comes after ${after}`,
          markerEnd: { type: MarkerType.ArrowClosed },
          data: { lock: null },
        });
      }
    }
    for (const [id, { from, to }] of Object.entries(graph.links)) {
      edges.push({
        id: LINK + id,
        source: from.node === undefined ? IN : NODE + from.node,
        sourceHandle: from.port,
        target: to.node === undefined ? OUT : NODE + to.node,
        targetHandle: to.port,
        type: "link",
        selected: selection.links.includes(id),
        ariaLabel: `Link ${id} from ${from.node ?? "input"} ${from.port} to ${to.node ?? "output"} ${to.port}`,
        data: { lock: others.find((l) => l.unit === place.link(workflow, id)) ?? null },
      });
    }
  } else if (body?.kind === "construct") {
    nodes.push(use("of", body.of, "", { x: 0, y: 0 }, true));
    if (body.construct === "conditional" && body.else) nodes.push(use("else", body.else, "", { x: 0, y: 190 }, true));
    const operand = interfaceOf(composition, body.of);
    for (const p of operand.inputs) if (own.inputs.some((o) => o.id === p.id)) edges.push(shadow(IN, p.id, NODE + "of", p.id));
    for (const p of operand.outputs) if (own.outputs.some((o) => o.id === p.id)) edges.push(shadow(NODE + "of", p.id, OUT, p.id));
  } else if (body?.kind === "task") {
    const { run, service } = body.action;
    const node = use("task", workflow, "", { x: 0, y: 0 }, true) as Node<UseData, "use">;
    const script = typeof run === "string" ? run : typeof service === "string" ? `service: ${service}` : "";
    nodes.push({ ...node, selectable: false, data: { ...node.data, subtitle: "the task itself", script } });
    for (const p of own.inputs) edges.push(shadow(IN, p.id, NODE + "task", p.id));
    for (const p of own.outputs) edges.push(shadow(NODE + "task", p.id, OUT, p.id));
  }

  const portLock = others.find((l) => l.unit === place.interface(workflow)) ?? null;
  const box = boxOf(nodes.map((n) => n.position));
  const border = (side: "in" | "out", x: number, ports: Port[]): CanvasNode => ({
    id: side === "in" ? IN : OUT,
    type: "border",
    position: { x, y: box.middle - 30 - ports.length * 12 },
    draggable: false,
    selectable: false,
    ariaLabel: side === "in" ? "Inputs of the workflow" : "Outputs of the workflow",
    data: { side, ports, portLock },
  });
  nodes.push(border("in", box.left - 215, own.inputs), border("out", box.right + NODE_WIDTH + 70, own.outputs));
  return { nodes, edges };
}

function remembered<T>(find: (key: string) => T): (key: string) => T {
  const known = new Map<string, T>();
  return (key) => {
    const found = known.get(key) ?? find(key);
    known.set(key, found);
    return found;
  };
}

/** A link that follows from what a workflow is, and cannot be changed. */
function shadow(source: string, from: string, target: string, to: string): CanvasEdge {
  return {
    id: `s:${source}:${from}:${target}:${to}`,
    source,
    target,
    sourceHandle: from,
    targetHandle: to,
    type: "link",
    selectable: false,
    focusable: false,
    data: { lock: null },
  };
}

/** Where the nodes of a graph are drawn, also if nobody has said so yet. */
export function positionsOf(composition: Composition, workflow: string): Map<string, { x: number; y: number }> {
  const graph = graphOf(composition, workflow);
  if (!graph) return new Map();
  if (isUnplaced(graph)) return placeInLayers(composition, graph);
  return new Map(Object.entries(graph.nodes).map(([id, { x, y }]) => [id, { x, y }]));
}

function boxOf(at: { x: number; y: number }[]): { left: number; right: number; middle: number } {
  if (at.length === 0) return { left: 0, right: 0, middle: 0 };
  const xs = at.map((p) => p.x);
  const ys = at.map((p) => p.y);
  return { left: Math.min(...xs), right: Math.max(...xs), middle: (Math.min(...ys) + Math.max(...ys)) / 2 + 50 };
}
