import type { Plane } from "../canvas/plane";
import type { BoardState } from "./boardState";
import { standing, STANDINGS, type GraphModel, type GraphPath } from "./graphModel";

/** A graph, how its steps stand, and what of it is looked at. */
export interface GraphScene {
  model: GraphModel;
  plane: Plane;
  board: BoardState | null;
  /** The steps of the board that the nodes are. */
  steps: Int32Array;
  /** How they stand, by the numbers of `STANDINGS`. */
  standings: Uint8Array;
  path: GraphPath | null;
  selected: number;
  hovered: number;
}

/** How all nodes stand. */
export function standingsOf(board: BoardState | null, steps: Int32Array): Uint8Array {
  return Uint8Array.from(steps, (step) => STANDINGS.indexOf(standing(board, step)));
}
