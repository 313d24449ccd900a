import { heightOf, NODE_WIDTH } from "../model/placement";
import { graphOf, interfaceOf } from "../model/read";
import { round } from "../model/edit";
import type { Change, Composition } from "../model/types";

/** Asks ELK where the nodes of a graph should be. It is large, so it is loaded here only, and works beside the page. */
export async function tidy(composition: Composition, workflow: string): Promise<Change[]> {
  const graph = graphOf(composition, workflow);
  if (!graph) return [];
  const [{ default: Elk }, { default: address }] = await Promise.all([import("elkjs/lib/elk-api.js"), import("elkjs/lib/elk-worker.min.js?url")]);
  const elk = new Elk({ workerFactory: () => new Worker(address) });
  const side = (node: string, of: string, where: "inputs" | "outputs") => {
    const ports = interfaceOf(composition, of)[where];
    const isIn = where === "inputs";
    return ports.map((p, i) => ({
      id: `${node}/${isIn ? "i" : "o"}/${p.id}`,
      width: 1,
      height: 1,
      layoutOptions: { "port.side": isIn ? "WEST" : "EAST", "port.index": String(isIn ? ports.length - i : i) },
    }));
  };
  const children = Object.entries(graph.nodes).map(([id, node]) => ({
    id,
    width: NODE_WIDTH,
    height: heightOf(composition, node.workflow) + 24,
    ports: [...side(id, node.workflow, "inputs"), ...side(id, node.workflow, "outputs")],
    layoutOptions: { portConstraints: "FIXED_ORDER" },
  }));
  const links = Object.entries(graph.links)
    .filter(([, l]) => l.from.node !== undefined && l.to.node !== undefined)
    .map(([id, l]) => ({ id, sources: [`${l.from.node}/o/${l.from.port}`], targets: [`${l.to.node}/i/${l.to.port}`] }));
  const orders = Object.entries(graph.nodes).flatMap(([id, n]) => (n.after ?? []).map((a) => ({ id: `after/${a}/${id}`, sources: [a], targets: [id] })));
  const layoutOptions = {
    "elk.algorithm": "layered",
    "elk.direction": "RIGHT",
    "elk.layered.spacing.nodeNodeBetweenLayers": "90",
    "elk.spacing.nodeNode": "45",
    "elk.layered.nodePlacement.strategy": "NETWORK_SIMPLEX",
  };
  try {
    const placed = await elk.layout({ id: "root", layoutOptions, children, edges: [...links, ...orders] });
    return (placed.children ?? []).flatMap((c): Change[] => {
      const node = graph.nodes[c.id];
      const { x, y } = round({ x: c.x ?? 0, y: c.y ?? 0 });
      return node && (node.x !== x || node.y !== y) ? [{ change: "move-node", workflow, id: c.id, x, y }] : [];
    });
  } finally {
    elk.terminateWorker();
  }
}
