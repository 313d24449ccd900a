import { Heap } from "./heap";
import type { LanesData } from "./lanesData";

/** Bars in rows in which no two of them overlap. Rows belong to lanes, and bars of a row are sorted by their start. */
export interface Packed {
  rows: number;
  /** The first row of each lane, and one more. */
  laneRow: Int32Array;
  /** The lane of each row. */
  rowLane: Int32Array;
  /** Where the bars of each row begin in the columns below, and one more. */
  rowFrom: Int32Array;
  /** Which bar. */
  bar: Int32Array;
  start: Float64Array;
  end: Float64Array;
  /** Where a bar is in the columns above, and in which row. */
  place: Int32Array;
  row: Int32Array;
  from: number;
  to: number;
}

/**
 * Packs the bars of each lane into as few rows as possible: each bar goes to the uppermost row that is free when it starts.
 * Bars that are sorted already, as those of a run nearly are, take linear time to sort.
 */
export function pack(data: LanesData): Packed {
  const count = data.lane.length;
  const lanes = data.lanes.length;
  const laneFrom = offsets(data.lane, lanes);
  const sorted = distributed(data.lane, laneFrom);
  const row = new Int32Array(count);
  const laneRow = new Int32Array(lanes + 1);
  let from = Infinity;
  let to = -Infinity;
  for (let lane = 0; lane < lanes; lane++) {
    const part = sorted.subarray(laneFrom[lane]!, laneFrom[lane + 1]!);
    sortByStart(part, data.start);
    laneRow[lane + 1] = laneRow[lane]! + Math.max(1, assign(part, data, laneRow[lane]!, row));
  }
  for (let i = 0; i < count; i++) {
    if (data.start[i]! < from) from = data.start[i]!;
    if (data.end[i]! > to) to = data.end[i]!;
  }
  return { ...columns(data, sorted, row, laneRow), from, to };
}

/** Where the things of each group begin if they are put in order. */
function offsets(group: Int32Array, groups: number): Int32Array {
  const from = new Int32Array(groups + 1);
  for (let i = 0; i < group.length; i++) from[group[i]! + 1]! += 1;
  for (let g = 0; g < groups; g++) from[g + 1]! += from[g]!;
  return from;
}

function distributed(group: Int32Array, from: Int32Array): Int32Array {
  const next = from.slice();
  const result = new Int32Array(group.length);
  for (let i = 0; i < group.length; i++) result[next[group[i]!]!++] = i;
  return result;
}

function sortByStart(part: Int32Array, start: Float64Array) {
  let inOrder = true;
  for (let i = 1; i < part.length && inOrder; i++) inOrder = start[part[i - 1]!]! <= start[part[i]!]!;
  // Arrays sort what is nearly in order in nearly linear time, typed arrays do not.
  if (!inOrder) part.set(Array.from(part).sort((a, b) => start[a]! - start[b]!));
}

/** Gives the bars of a lane their rows, and returns how many there are. */
function assign(part: Int32Array, data: LanesData, firstRow: number, row: Int32Array): number {
  const busy = new Heap();
  const free = new Heap();
  let rows = 0;
  for (const bar of part) {
    const start = data.start[bar]!;
    while (busy.least <= start) {
      const freed = busy.pop();
      free.push(freed, freed);
    }
    const taken = free.size > 0 ? free.pop() : rows++;
    row[bar] = firstRow + taken;
    busy.push(Math.max(data.end[bar]!, start), taken);
  }
  return rows;
}

function columns(data: LanesData, sorted: Int32Array, row: Int32Array, laneRow: Int32Array) {
  const count = sorted.length;
  const rows = laneRow[laneRow.length - 1]!;
  const rowFrom = offsets(row, rows);
  const next = rowFrom.slice();
  const bar = new Int32Array(count);
  const place = new Int32Array(count);
  const start = new Float64Array(count);
  const end = new Float64Array(count);
  for (const b of sorted) {
    const at = next[row[b]!]!++;
    bar[at] = b;
    place[b] = at;
    start[at] = data.start[b]!;
    end[at] = Math.max(data.end[b]!, data.start[b]!);
  }
  const rowLane = new Int32Array(rows);
  for (let lane = 0; lane + 1 < laneRow.length; lane++) rowLane.fill(lane, laneRow[lane]!, laneRow[lane + 1]!);
  return { rows, laneRow, rowLane, rowFrom, bar, start, end, place, row };
}
