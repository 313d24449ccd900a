import { interfaceOf } from "./read";
import type { Composition, Graph } from "./types";

export const NODE_WIDTH = 210;
const HEADER = 52;
const ROW = 24;

/** How tall a node is drawn, about. */
export function heightOf(composition: Composition, workflow: string): number {
  const ports = interfaceOf(composition, workflow);
  return HEADER + ROW * Math.max(1, ports.inputs.length, ports.outputs.length) + 14;
}

/** Whether nobody has said where the nodes of a graph are drawn. */
export function isUnplaced(graph: Graph): boolean {
  const nodes = Object.values(graph.nodes);
  return nodes.length > 0 && nodes.every((n) => n.x === 0 && n.y === 0);
}

/** Where the nodes of a graph could be drawn: in layers from left to right, by what they need. */
export function placeInLayers(composition: Composition, graph: Graph): Map<string, { x: number; y: number }> {
  const needs = new Map<string, Set<string>>(Object.keys(graph.nodes).map((id) => [id, new Set()]));
  for (const { from, to } of Object.values(graph.links)) {
    if (from.node !== undefined && to.node !== undefined && needs.has(from.node)) needs.get(to.node)?.add(from.node);
  }
  for (const [id, node] of Object.entries(graph.nodes)) for (const a of node.after ?? []) if (needs.has(a)) needs.get(id)!.add(a);

  const layers = new Map<string, number>();
  const layerOf = (id: string, depth = 0): number => {
    const known = layers.get(id);
    if (known !== undefined || depth > needs.size) return known ?? 0;
    let layer = 0;
    for (const before of needs.get(id)!) layer = Math.max(layer, layerOf(before, depth + 1) + 1);
    layers.set(id, layer);
    return layer;
  };
  const columns: string[][] = [];
  for (const id of needs.keys()) (columns[layerOf(id)] ??= []).push(id);

  const placed = new Map<string, { x: number; y: number }>();
  columns.forEach((column, layer) => {
    const heights = column.map((id) => heightOf(composition, graph.nodes[id]!.workflow) + 40);
    let y = -heights.reduce((a, b) => a + b, 0) / 2;
    column.forEach((id, i) => {
      placed.set(id, { x: layer * (NODE_WIDTH + 90), y: Math.round(y) });
      y += heights[i]!;
    });
  });
  return placed;
}
