import { expect, test } from "@playwright/test";
import { MARK } from "../../src/canvas/lanesData";
import { barAt, LanesView, neighbour } from "../../src/canvas/lanesView";
import { markAfter, marked } from "../../src/canvas/marks";
import { overview } from "../../src/canvas/overview";
import { pack } from "../../src/canvas/packing";
import { pixel } from "../../src/canvas/pixels";
import { RowRaster } from "../../src/canvas/rowRaster";
import type { Shades } from "../../src/canvas/shades";
import { bars, manyBars, type Bar } from "./bars";

test("bars that overlap are in different rows, and a row that is free is used again", () => {
  const packed = pack(bars(["a", "b", "c"], [[2, 0, 5], [0, 4, 6], [0, 0, 4], [0, 1, 9], [2, 5, 6]]));
  expect(packed.rows).toBe(4);
  expect([...packed.laneRow]).toEqual([0, 2, 3, 4]);
  expect([...packed.rowLane]).toEqual([0, 0, 1, 2]);
  // A lane without bars has an empty row.
  expect([...packed.row]).toEqual([3, 0, 0, 1, 3]);
  expect([...packed.bar]).toEqual([2, 1, 3, 0, 4]);
  expect([packed.from, packed.to]).toEqual([0, 9]);
});

test("a bar goes to the uppermost row that is free", () => {
  const packed = pack(bars(["a"], [[0, 0, 2], [0, 0, 3], [0, 0, 9], [0, 4, 5]]));
  expect([...packed.row]).toEqual([0, 1, 2, 0]);
});

test("bars are packed into as few rows as there are at once, sorted and without overlaps", () => {
  for (const seed of [1, 2, 3]) {
    const data = manyBars(500, 4, seed);
    const packed = pack(data);
    const seen = new Set<number>();
    for (let row = 0; row < packed.rows; row++) {
      let free = -Infinity;
      for (let i = packed.rowFrom[row]!; i < packed.rowFrom[row + 1]!; i++) {
        const bar = packed.bar[i]!;
        seen.add(bar);
        expect(packed.place[bar]).toBe(i);
        expect(packed.row[bar]).toBe(row);
        expect(data.lane[bar]).toBe(packed.rowLane[row]);
        expect(packed.start[i]!).toBeGreaterThanOrEqual(free);
        free = packed.end[i]!;
      }
    }
    expect(seen.size).toBe(500);
    for (let lane = 0; lane < 4; lane++) {
      const mine = [...data.lane.keys()].filter((b) => data.lane[b] === lane);
      const atOnce = mine.map((b) => mine.filter((o) => data.start[o]! <= data.start[b]! && data.end[o]! > data.start[b]!).length);
      const rows = packed.laneRow[lane + 1]! - packed.laneRow[lane]!;
      // A bar that takes no time needs a row as well.
      expect(rows).toBeGreaterThanOrEqual(Math.max(...atOnce));
      expect(rows).toBeLessThanOrEqual(Math.max(...atOnce) + 1);
    }
  }
});

test("nothing at all can be packed, and a bar that ends before it starts takes no time", () => {
  expect(pack(bars([], []))).toMatchObject({ rows: 0, from: Infinity, to: -Infinity });
  const packed = pack(bars(["a"], [[0, 5, 3], [0, 5, 7]]));
  expect([...packed.end]).toEqual([5, 7]);
});

test("going from bar to bar one comes to every bar of a lane, there and back", () => {
  for (let seed = 1; seed < 20; seed++) {
    const data = manyBars(60, 2, seed, 20, 4);
    const packed = pack(data);
    for (const lane of [0, 1]) {
      const mine = [...data.lane.keys()].filter((b) => data.lane[b] === lane);
      const [first] = mine.filter((b) => neighbour(packed, b, -1) < 0);
      const walk = [first!];
      for (let bar = neighbour(packed, first!, 1); bar >= 0 && walk.length <= mine.length; bar = neighbour(packed, bar, 1)) walk.push(bar);
      expect([...walk].sort((a, b) => a - b), `lane ${lane} of ${seed}`).toEqual(mine);
      const starts = walk.map((b) => data.start[b]!);
      expect(starts).toEqual([...starts].sort((a, b) => a - b));
      const back = [walk.at(-1)!];
      for (let bar = neighbour(packed, back[0]!, -1); bar >= 0 && back.length <= mine.length; bar = neighbour(packed, bar, -1)) back.push(bar);
      expect(back).toEqual([...walk].reverse());
    }
  }
});

test("a bar is found at its time, or near it", () => {
  const packed = pack(bars(["a"], [[0, 10, 20], [0, 30, 40]]));
  expect(barAt(packed, 0, 15, 0)).toBe(0);
  expect(barAt(packed, 0, 25, 0)).toBe(-1);
  expect(barAt(packed, 0, 22, 3)).toBe(0);
  expect(barAt(packed, 0, 28, 3)).toBe(1);
  expect(barAt(packed, 0, 24, 100)).toBe(0);
  expect(barAt(packed, 0, 41, 0)).toBe(-1);
});

test("bars with marks are found by their row and time", () => {
  const data = bars(["a", "b"], [[0, 0, 5, MARK.failed], [0, 5, 9], [0, 9, 12, MARK.lost], [1, 0, 3, MARK.retried]]);
  const packed = pack(data);
  const bad = marked(data, packed, MARK.failed, MARK.lost);
  expect([...bad.at].map((i) => packed.bar[i])).toEqual([0, 2]);
  expect([...bad.rowFrom]).toEqual([0, 2, 2]);
  expect(markAfter(bad, packed, 0, 4)).toBe(0);
  expect(markAfter(bad, packed, 0, 5)).toBe(1);
  expect(markAfter(bad, packed, 0, 12)).toBe(2);
});

test("who sees everything goes on to when more time comes", () => {
  const view = new LanesView();
  view.setBounds({ from: 0, to: 100 }, true);
  view.setBounds({ from: 0, to: 200 }, true);
  expect(view.span).toEqual({ from: 0, to: 200 });
});

test("who looks at the end follows it, and who looks elsewhere stays", () => {
  const view = new LanesView();
  view.setBounds({ from: 0, to: 1000 }, true);
  view.zoom(0.5, 1000);
  expect(view).toMatchObject({ span: { from: 500, to: 1000 }, fitted: false, following: true });
  view.setBounds({ from: 0, to: 1100 }, true);
  expect(view.span).toEqual({ from: 600, to: 1100 });
  view.pan(-100);
  expect(view.following).toBe(false);
  view.setBounds({ from: 0, to: 1200 }, true);
  expect(view.span).toEqual({ from: 500, to: 1000 });
  view.follow();
  expect(view).toMatchObject({ span: { from: 700, to: 1200 }, following: true });
  // Nothing moves in a picture of what is over.
  view.setBounds({ from: 0, to: 1300 }, false);
  expect(view.span).toEqual({ from: 700, to: 1200 });
  view.zoom(100, 800);
  expect(view).toMatchObject({ span: { from: 0, to: 1300 }, fitted: true });
  view.zoom(1e-9, 800);
  expect(view.span.to - view.span.from).toBeCloseTo(5);
});

test("rows are as high as fits, and a row is where its upper side says", () => {
  const packed = pack(bars(["a", "b"], [[0, 0, 9], [0, 1, 9], [1, 0, 9]]));
  const view = new LanesView();
  view.setRows(packed, 400);
  expect(view.rowHeight).toBe(22);
  view.setRows(packed, 50);
  expect(view.rowHeight).toBe(14);
  for (let row = 0; row < 3; row++) {
    const top = view.top(packed, row);
    expect(view.rowAt(packed, top + 0.01)).toBe(row);
    expect(view.rowAt(packed, top + view.rowHeight - 0.01)).toBe(row);
  }
  // There is a gap between lanes.
  expect(view.rowAt(packed, 28.5)).toBe(-1);
  expect(view.laneAt(packed, 28.5)).toBe(0);
  expect(view.laneAt(packed, 500)).toBe(-1);
  view.zoomRows(2, 25);
  expect(view.rowHeight).toBe(28);
  view.scrollTo(1e9);
  expect(view.top(packed, 2) + view.rowHeight).toBeLessThanOrEqual(50);
  view.zoomRows(0.001, 25);
  expect(view).toMatchObject({ rowHeight: 14, scroll: 0 });
});

test("a bar that is out of sight is brought into it", () => {
  const all = Array.from({ length: 100 }, (_, i): Bar => [i, i * 10, i * 10 + 5]);
  const packed = pack(bars(all.map((_, i) => `a${i}`), all));
  const view = new LanesView();
  view.setBounds({ from: 0, to: 1000 }, false);
  view.setRows(packed, 60);
  view.zoomRows(20, 0);
  view.show({ from: 0, to: 100 });
  view.reveal(packed, 50);
  expect(view.span.from).toBeLessThanOrEqual(500);
  expect(view.span.to).toBeGreaterThanOrEqual(505);
  expect(view.span.to - view.span.from).toBeCloseTo(100);
  const top = view.top(packed, 50);
  expect(top).toBeGreaterThanOrEqual(0);
  expect(top + view.rowHeight).toBeLessThanOrEqual(60);
});

test("the strip says how many bars there are at each time", () => {
  const packed = pack(bars(["a"], [[0, 0, 600], [0, 300, 600], [0, 300.25, 300.75]]));
  const { busy, most } = overview(packed, { from: 0, to: 600 });
  expect(busy[0]).toBe(1);
  expect(busy[299]).toBe(1);
  expect(busy[300]).toBe(2.5);
  expect(busy[599]).toBe(2);
  expect(most).toBe(2.5);
});

/** Red and blue bars by turns, as `shade` would make them, which needs a canvas to know what a colour is. */
function shadesOf(packed: ReturnType<typeof pack>): Shades {
  const count = packed.bar.length;
  const sums = () => new Float64Array(count + 1);
  const shades = { colour: new Float32Array(3 * count), alpha: new Float32Array(count).fill(1), red: sums(), green: sums(), blue: sums(), weight: sums() };
  for (let i = 0; i < count; i++) {
    const length = packed.end[i]! - packed.start[i]!;
    const isRed = packed.bar[i]! % 2 === 0;
    shades.colour[3 * i + (isRed ? 0 : 2)] = 200;
    shades.red[i + 1] = shades.red[i]! + (isRed ? 200 * length : 0);
    shades.blue[i + 1] = shades.blue[i]! + (isRed ? 0 : 200 * length);
    shades.green[i + 1] = 0;
    shades.weight[i + 1] = shades.weight[i]! + length;
  }
  return shades;
}

function drawn(all: Bar[], width: number, from: number, perPixel: number): { red: number; blue: number }[] {
  const packed = pack(bars(["a"], all));
  const raster = new RowRaster();
  raster.resize(width);
  const ground = new Uint32Array(width).fill(pixel(0, 0, 0));
  if (!raster.draw(packed, shadesOf(packed), 0, from, perPixel, ground)) return [];
  return Array.from(raster.line, (value) => ({ red: value & 255, blue: (value >>> 16) & 255 }));
}

test("a pixel has the mean colour of the thousands of bars in it", () => {
  const all = Array.from({ length: 4000 }, (_, i): Bar => [0, i, i + 1]);
  for (const { red, blue } of drawn(all, 4, 0, 1000)) {
    expect(Math.abs(red - 100)).toBeLessThanOrEqual(1);
    expect(Math.abs(blue - 100)).toBeLessThanOrEqual(1);
  }
});

test("a bar is drawn where it is, and one that is short can be seen", () => {
  expect(drawn([[0, 2, 4]], 6, 0, 1).map((p) => p.red)).toEqual([0, 0, 200, 200, 0, 0]);
  const [before, speck] = drawn([[0, 1500, 1500.001]], 2, 0, 1000);
  expect(before!.red).toBe(0);
  expect(speck!.red).toBe(80);
  expect(drawn([[0, 0, 1]], 4, 10, 1)).toEqual([]);
});
