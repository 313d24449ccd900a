import { MARK, type LanesData } from "../../src/canvas/lanesData";
import { random } from "./random";

export type Bar = [lane: number, start: number, end: number, mark?: number];

export function bars(lanes: string[], all: Bar[]): LanesData {
  return {
    lanes,
    lane: Int32Array.from(all, (b) => b[0]),
    start: Float64Array.from(all, (b) => b[1]),
    end: Float64Array.from(all, (b) => b[2]),
    colour: new Int32Array(all.length),
    mark: Uint8Array.from(all, (b) => b[3] ?? MARK.none),
    colours: [{ name: "all", colour: "#000" }],
  };
}

/** Bars here and there; some of them start together, some take no time. */
export function manyBars(count: number, lanes: number, seed: number, times = 200, longest = 30): LanesData {
  const next = random(seed);
  const names = Array.from({ length: lanes }, (_, i) => `agent ${i}`);
  const all = Array.from({ length: count }, (): Bar => {
    const start = Math.floor(next() * times);
    return [Math.floor(next() * lanes), start, start + Math.floor(next() * longest)];
  });
  return bars(names, all);
}
