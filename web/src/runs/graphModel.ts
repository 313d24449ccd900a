import { CHAIN_STATE_CODES, type ChainState, type GraphView } from "../api/types";
import { Bands } from "../canvas/bands";
import type { BoardState } from "./boardState";

/** How a step stands: the state of its chains that matters most, or `none` if it has no chains yet. */
export type Standing = ChainState | "none";
export const STANDINGS: Standing[] = ["none", ...CHAIN_STATE_CODES];

/** What matters most comes first. */
const WEIGHT: ChainState[] = ["failed", "running", "paused", "cancelled", "registered", "succeeded"];

/** A graph with everything that is looked up in it. */
export class GraphModel {
  readonly successors: number[][];
  readonly predecessors: number[][];
  /** The edges of each node, by their numbers. */
  readonly edgesOf: number[][];
  readonly nodeBands: Bands;
  readonly edgeBands: Bands;
  private readonly named: Map<string, number>;

  constructor(readonly view: GraphView) {
    const { nodes, edges } = view;
    this.successors = nodes.map(() => []);
    this.predecessors = nodes.map(() => []);
    this.edgesOf = nodes.map(() => []);
    edges.forEach(([from, to], i) => {
      this.successors[from]?.push(to);
      this.predecessors[to]?.push(from);
      this.edgesOf[from]?.push(i);
      this.edgesOf[to]?.push(i);
    });
    this.named = new Map(nodes.map((node, i) => [node.name, i]));
    const y = (i: number) => nodes[i]?.y ?? 0;
    this.nodeBands = new Bands(nodes.length, y, (i) => y(i) + nodes[i]!.height, view.height);
    this.edgeBands = new Bands(
      edges.length,
      (i) => Math.min(y(edges[i]![0]), y(edges[i]![1])),
      (i) => Math.max(y(edges[i]![0]), y(edges[i]![1])) + (nodes[edges[i]![0]]?.height ?? 0),
      view.height,
    );
  }

  /** The node with this name, or -1. */
  find(name: string): number {
    return this.named.get(name) ?? -1;
  }

  /** The node at a point, or -1. */
  at(x: number, y: number): number {
    let found = -1;
    this.nodeBands.within(y, y, (i) => {
      const node = this.view.nodes[i]!;
      if (x >= node.x && x <= node.x + node.width) found = i;
    });
    return found;
  }

  /** The steps of the board that the nodes are, -1 where it does not know one yet. */
  stepsIn(board: BoardState | null): Int32Array {
    const steps = new Map(board?.steps.map((name, i) => [name, i]));
    return Int32Array.from(this.view.nodes, (node) => steps.get(node.name) ?? -1);
  }

  /**
   * Where an arrow key leads: along an edge if there is one in this direction, else to the nearest node beside this one that has
   * a neighbour in common with it, else to the nearest one of all.
   */
  towards(from: number, dx: number, dy: number): number {
    const linked = [...this.successors[from]!, ...this.predecessors[from]!];
    const along = this.nearest(from, linked, dx, dy);
    if (along >= 0) return along;
    const siblings = [
      ...this.predecessors[from]!.flatMap((p) => this.successors[p]!),
      ...this.successors[from]!.flatMap((s) => this.predecessors[s]!),
    ];
    const beside = this.nearest(from, siblings, dx, dy);
    return beside >= 0 ? beside : this.nearest(from, this.view.nodes.keys(), dx, dy);
  }

  private nearest(from: number, candidates: Iterable<number>, dx: number, dy: number): number {
    const { nodes } = this.view;
    const middle = (i: number) => ({ x: nodes[i]!.x + nodes[i]!.width / 2, y: nodes[i]!.y + nodes[i]!.height / 2 });
    const own = middle(from);
    let best = -1;
    let least = Infinity;
    for (const i of candidates) {
      const other = middle(i);
      const ahead = (other.x - own.x) * dx + (other.y - own.y) * dy;
      const aside = Math.abs((other.x - own.x) * dy) + Math.abs((other.y - own.y) * dx);
      // Graphs go from top to bottom: what is below may be far aside, what is beside may not be far below.
      if (i === from || ahead < 1 || (dx !== 0 && aside > ahead)) continue;
      const distance = ahead + aside * (dx !== 0 ? 3 : 0.5);
      if (distance < least) {
        least = distance;
        best = i;
      }
    }
    return best;
  }
}

/** How a step of the board stands. */
export function standing(board: BoardState | null, step: number): Standing {
  if (!board || step < 0) return "none";
  return WEIGHT.find((state) => board.countOf(step, CHAIN_STATE_CODES.indexOf(state)) > 0) ?? "none";
}

/** The steps of a critical path, and between which of them it goes. */
export interface GraphPath {
  nodes: Set<number>;
  /** Edges by their numbers. */
  edges: Set<number>;
}

export function graphPath(model: GraphModel, links: { steps: string[] }[]): GraphPath {
  const order = links.flatMap((link) => link.steps).map((name) => model.find(name));
  const nodes = new Set(order.filter((node) => node >= 0));
  const next = new Set(order.slice(1).map((to, i) => `${order[i]} ${to}`));
  const edges = new Set<number>();
  model.view.edges.forEach(([from, to], i) => next.has(`${from} ${to}`) && edges.add(i));
  return { nodes, edges };
}
