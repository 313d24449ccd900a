import { CHAIN_STATE_CODES } from "../api/types";
import { pack } from "../canvas/packing";
import type { BoardState } from "./boardState";
import {  mishapOf, rowOf, setName, type Timeline } from "./timelineData";

/** So many events are written into one piece of text. */
const PIECE = 5000;

/**
 * A timeline in the trace format of Chrome, which Perfetto and others read: a process for each agent, and in it a thread for each
 * row, because events of a thread must not overlap. In pieces, so that the largest runs do not need one enormous text.
 */
export function trace(state: BoardState, picture: Timeline): string[] {
  const { data, source } = picture;
  const packed = pack(data);
  const pieces: string[] = [];
  let piece: string[] = data.lanes.map((name, lane) => JSON.stringify({ ph: "M", pid: lane + 1, name: "process_name", args: { name } }));
  const flush = (last: boolean) => {
    if (piece.length > 0) pieces.push(piece.join(",\n") + (last ? "\n" : ",\n"));
    piece = [];
  };
  for (let bar = 0; bar < data.lane.length; bar++) {
    if (piece.length >= PIECE) flush(false);
    const row = rowOf(state, source[bar]!);
    const mishap = mishapOf(state, source[bar]!);
    const lane = data.lane[bar]!;
    piece.push(
      JSON.stringify({
        ph: "X",
        pid: lane + 1,
        tid: packed.row[bar]! - packed.laneRow[lane]! + 1,
        ts: data.start[bar]! * 1000,
        dur: (data.end[bar]! - data.start[bar]!) * 1000,
        name: state.stepsOf(row).join(" → "),
        cat: setName(state.classes[state.chains.class[row]!] ?? []),
        args: {
          chain: state.chains.chain[row],
          attempt: mishap?.attempt ?? state.chains.attempt[row],
          state: mishap ? (mishap.lost ? "lost" : "failed attempt") : CHAIN_STATE_CODES[state.chains.state[row]!],
          ...(mishap ? { message: mishap.message } : {}),
        },
        ...(mishap ? { cname: "terrible" } : {}),
      }),
    );
  }
  flush(true);
  return ['{"displayTimeUnit":"ms","traceEvents":[\n', ...pieces, "]}\n"];
}
