import type { Point } from "./gestures";
import type { LanesScene } from "./lanesScene";
import { LanesView } from "./lanesView";

const AXIS_HEIGHT = 24;
const OVERVIEW_HEIGHT = 40;
const LOWEST = 200;

/** Where the parts of the picture are. */
export interface Frame {
  /** Lane names are left of this, times and bars right of it. */
  left: number;
  /** Times are above this. */
  top: number;
  /** What is left for bars. */
  width: number;
  height: number;
  /** The upper side of the strip that shows everything. */
  strip: number;
}

export function frameOf(scene: LanesScene, width: number, height: number): Frame {
  const left = Math.min(scene.gutter, width * 0.35);
  const strip = Math.max(height - OVERVIEW_HEIGHT, AXIS_HEIGHT);
  return { left, top: AXIS_HEIGHT, width: Math.max(width - left, 1), height: Math.max(strip - AXIS_HEIGHT, 1), strip };
}

/** A picture of few lanes need not be high, but not so low that it is hard to hit either. */
export function highest(scene: LanesScene): number {
  return Math.max(LanesView.heightOf(scene.packed) + AXIS_HEIGHT + OVERVIEW_HEIGHT + 2, LOWEST);
}

/** Milliseconds per CSS pixel. */
export function perPixel(scene: LanesScene, frame: Frame): number {
  return (scene.view.span.to - scene.view.span.from) / frame.width;
}

export type Part = "names" | "bars" | "strip" | "axis";

export function partAt(frame: Frame, at: Point): Part {
  if (at.y >= frame.strip) return "strip";
  if (at.x < frame.left) return "names";
  return at.y < frame.top ? "axis" : "bars";
}

export function timeAt(scene: LanesScene, frame: Frame, x: number): number {
  return scene.view.span.from + (x - frame.left) * perPixel(scene, frame);
}

/** The time in the strip, which shows all of it. */
export function stripTimeAt(scene: LanesScene, frame: Frame, x: number): number {
  const { from, to } = scene.view.bounds;
  return from + ((x - frame.left) / frame.width) * (to - from);
}
