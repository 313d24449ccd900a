import { get } from "../api/client";
import type { ServiceView } from "../api/types";
import { EMPTY_GRAPH, EMPTY_TASK, placeCopy, placeNew, placeWorkflow, servicesOf, taskOfService, type Spot } from "./model/edit";
import type { Composition } from "./model/types";

/** Something that can be put into a graph. Written as JSON while it is dragged. */
export type Item =
  | { what: "task" | "graph" }
  | { what: "workflow"; id: string }
  | { what: "service"; id: string }
  | { what: "copy"; composition: string; id: string };

/** What palettes put into a drag. */
export const DRAGGED = "application/x-catena-workflow";

/** The changes that put something into a graph, and the node that comes of it. */
export async function placeItem(item: Item, composition: Composition, graph: string, at: Spot) {
  switch (item.what) {
    case "task":
      return placeNew(composition, graph, "task", EMPTY_TASK, at);
    case "graph":
      return placeNew(composition, graph, "graph", EMPTY_GRAPH, at);
    case "workflow":
      return placeWorkflow(composition, graph, item.id, at);
    case "service": {
      const known = [...servicesOf(composition), ...(await get<ServiceView[]>("/services"))];
      const service = known.find((s) => s.id === item.id);
      if (!service) throw new Error(`There is no service ${item.id} any more.`);
      return placeNew(composition, graph, item.id, taskOfService(service), at);
    }
    case "copy": {
      const other = await get<Composition>(`/compositions/${encodeURIComponent(item.composition)}?form=json`);
      return placeCopy(composition, graph, other, item.id, at);
    }
  }
}
