import { expect, test } from "@playwright/test";
import { Bands } from "../../src/canvas/bands";
import { Density } from "../../src/canvas/density";
import { Heap } from "../../src/canvas/heap";
import { mixed, pixel, type Pixels, type Rgb } from "../../src/canvas/pixels";
import { Plane } from "../../src/canvas/plane";
import { clamped, firstAbove, gallop, zoomed } from "../../src/canvas/span";
import { tickLabel, timeTicks } from "../../src/canvas/ticks";
import { random } from "./random";

test("a heap gives what is smallest first", () => {
  const next = random(7);
  const heap = new Heap();
  const keys = Array.from({ length: 300 }, () => Math.floor(next() * 50));
  keys.forEach((key, i) => heap.push(key, i));
  const popped: number[] = [];
  while (heap.size > 0) {
    const least = heap.least;
    popped.push(keys[heap.pop()]!);
    expect(popped.at(-1)).toBe(least);
  }
  expect(popped).toEqual([...keys].sort((a, b) => a - b));
  expect(heap.least).toBe(Infinity);
});

test("ticks are at times people count in, and have room", () => {
  expect(timeTicks(0, 10_000, 960).map((t) => t.label)).toEqual(["0", "1 s", "2 s", "3 s", "4 s", "5 s", "6 s", "7 s", "8 s", "9 s", "10 s"]);
  expect(timeTicks(3_500_000, 7_300_000, 400).map((t) => t.label)).toEqual(["1 h", "1 h 30 min", "2 h"]);
  for (const [from, to] of [[0, 7], [12.5, 13], [0, 86_400_000 * 3], [-5000, 5000], [0, 5e11]] as const) {
    const ticks = timeTicks(from, to, 800);
    const perPixel = (to - from) / 800;
    ticks.slice(1).forEach((tick, i) => expect((tick.at - ticks[i]!.at) / perPixel).toBeGreaterThanOrEqual(95.9));
    for (const { at } of ticks) expect(at >= from && at <= to).toBe(true);
    expect(new Set(ticks.map((t) => t.label)).size).toBe(ticks.length);
  }
  expect(timeTicks(5, 5, 800)).toEqual([]);
  expect(timeTicks(0, 10, 0)).toEqual([]);
});

test("a tick is only as exact as its step asks for", () => {
  expect(tickLabel(250, 50)).toBe("250 ms");
  expect(tickLabel(12_500, 500)).toBe("12.5 s");
  expect(tickLabel(12_505, 5)).toBe("12.505 s");
  expect(tickLabel(60_000, 10_000)).toBe("1 min");
  expect(tickLabel(90_000, 30_000)).toBe("1 min 30 s");
  expect(tickLabel(26 * 3_600_000, 3_600_000)).toBe("1 d 2 h");
  expect(tickLabel(-2000, 1000)).toBe("-2 s");
});

test("zooming leaves what is under the pointer where it is", () => {
  const span = zoomed({ from: 100, to: 200 }, 0.5, 125);
  expect(span).toEqual({ from: 112.5, to: 162.5 });
  expect((125 - span.from) / (span.to - span.from)).toBe((125 - 100) / 100);
});

test("a span stays within its bounds and is not too short", () => {
  const bounds = { from: 0, to: 100 };
  expect(clamped({ from: -20, to: 30 }, bounds, 5)).toEqual({ from: 0, to: 50 });
  expect(clamped({ from: 80, to: 130 }, bounds, 5)).toEqual({ from: 50, to: 100 });
  expect(clamped({ from: 49, to: 51 }, bounds, 10)).toEqual({ from: 45, to: 55 });
  expect(clamped({ from: -500, to: 700 }, bounds, 5)).toEqual(bounds);
});

test("what is searched for is found from anywhere", () => {
  const values = Float64Array.from([1, 1, 2, 3, 3, 3, 8, 9, 20]);
  for (const limit of [0, 1, 2.5, 3, 8, 20, 30]) {
    for (let from = 0; from <= values.length; from++) {
      const found = values.findIndex((v, i) => i >= from && v > limit);
      const expected = found < 0 ? values.length : found;
      expect(firstAbove(values, limit, from, values.length)).toBe(expected);
      expect(gallop(values, limit, from, values.length)).toBe(expected);
    }
  }
});

/** What a density shows of lines: how many go through each pixel. */
function counted(width: number, height: number, draw: (density: Density) => void): number[][] {
  const density = new Density();
  density.reset(width, height);
  draw(density);
  const data = new Uint32Array(width * height);
  const [ground, ink]: [Rgb, Rgb] = [[0, 0, 0], [200, 200, 200]];
  density.show({ data } as unknown as Pixels, ground, ink, 0.1);
  const shades = Array.from({ length: 25 }, (_, n) => pixel(...mixed(ground, ink, 1 - 0.9 ** n)));
  return Array.from({ length: height }, (_, y) => Array.from(data.subarray(y * width, (y + 1) * width), (value) => shades.indexOf(value)));
}

test("the more lines go through a pixel, the stronger it is, but not without end", () => {
  const rows = counted(4, 3, (density) => {
    for (let i = 0; i < 2; i++) density.line(0, 1, 4, 1);
    for (let i = 0; i < 100; i++) density.line(2, 0, 2, 0.5);
  });
  expect(rows).toEqual([[0, 0, 24, 0], [2, 2, 2, 0], [0, 0, 0, 0]]);
});

test("lines are cut off at the picture, and those beside it are not drawn", () => {
  expect(counted(3, 3, (density) => density.line(-4, 1, 4, 1))[1]!.slice(0, 2)).toEqual([1, 1]);
  const diagonal = counted(3, 3, (density) => density.line(-4, -4, 4, 4));
  expect([diagonal[0]![0], diagonal[1]![1], diagonal[0]![2]]).toEqual([1, 1, 0]);
  const none = counted(3, 3, (density) => {
    density.line(5, 0, 5, 3);
    density.line(-1, 3, 3, 7);
    density.line(-2, 1, -1, 1);
  });
  expect(none.flat().every((n) => n === 0)).toBe(true);
});

test("a density begins anew with each picture", () => {
  const density = new Density();
  density.reset(2, 1);
  density.line(0, 0, 2, 0);
  density.reset(2, 1);
  const data = new Uint32Array(2);
  density.show({ data } as unknown as Pixels, [1, 2, 3], [9, 9, 9], 0.5);
  expect([...data]).toEqual([pixel(1, 2, 3), pixel(1, 2, 3)]);
});

test("everything between two heights is found, each once", () => {
  const next = random(3);
  const boxes = Array.from({ length: 200 }, () => {
    const top = next() * 10_000;
    return { top, bottom: top + next() * 1500 };
  });
  const bands = new Bands(boxes.length, (i) => boxes[i]!.top, (i) => boxes[i]!.bottom, 10_000);
  for (const [from, to] of [[0, 100], [3000, 3000], [9000, 20_000], [-50, 20_000], [15_000, 16_000]] as const) {
    const found: number[] = [];
    bands.within(from, to, (i) => found.push(i));
    const expected = [...boxes.keys()].filter((i) => boxes[i]!.top <= to && boxes[i]!.bottom >= from);
    expect(found.sort((a, b) => a - b)).toEqual(expected);
  }
});

test("a plane is fitted into its window until somebody looks closer", () => {
  const plane = new Plane();
  plane.resize({ width: 400, height: 200 });
  plane.setContent({ width: 1000, height: 100 });
  const { x: left } = plane.at({ x: 0, y: 0 });
  const { x: right } = plane.at({ x: 400, y: 0 });
  expect(left).toBeLessThan(0);
  expect(right).toBeGreaterThan(1000);
  expect((left + right) / 2).toBeCloseTo(500);
  plane.resize({ width: 800, height: 200 });
  expect(plane.fitted).toBe(true);
  const under = plane.at({ x: 300, y: 80 });
  plane.zoom(2, { x: 300, y: 80 });
  expect(plane.at({ x: 300, y: 80 }).x).toBeCloseTo(under.x);
  expect(plane.at({ x: 300, y: 80 }).y).toBeCloseTo(under.y);
  expect(plane.fitted).toBe(false);
  plane.zoom(1000, { x: 300, y: 80 });
  expect(plane.scale).toBe(3);
  // One cannot lose it.
  plane.pan({ x: 1e6, y: -1e6 });
  expect(plane.at(plane.middle)).toEqual({ x: 0, y: 100 });
  plane.reveal(900, 10, 50, 20);
  expect(plane.x).toBeLessThanOrEqual(900);
  expect(plane.x + 800 / plane.scale).toBeGreaterThanOrEqual(950);
});
