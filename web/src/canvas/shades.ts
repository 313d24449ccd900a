import type { LanesData } from "./lanesData";
import type { Packed } from "./packing";
import { rgb, type Rgb } from "./pixels";

/** How much of a bar that has faded can still be seen. */
const FADED = 0.13;

/**
 * The colours of bars, and sums over them: what all bars up to one add to a picture, weighted by their length. The mean colour of
 * any number of neighbours is then a subtraction, so it does not matter how many of them share a pixel.
 */
export interface Shades {
  colour: Float32Array;
  /** How much can be seen of each bar: 1, or less if it has faded. */
  alpha: Float32Array;
  red: Float64Array;
  green: Float64Array;
  blue: Float64Array;
  weight: Float64Array;
}

export interface Fading {
  /** Only these bars do not fade. */
  highlight?: ReadonlySet<number> | undefined;
  /** Only bars of this colour do not fade. */
  only: number | null;
}

export function shade(data: LanesData, packed: Packed, fading: Fading): Shades {
  const count = packed.bar.length;
  const palette: Rgb[] = data.colours.map((c) => rgb(c.colour));
  const shades: Shades = {
    colour: new Float32Array(3 * count),
    alpha: new Float32Array(count),
    red: new Float64Array(count + 1),
    green: new Float64Array(count + 1),
    blue: new Float64Array(count + 1),
    weight: new Float64Array(count + 1),
  };
  const { colour, alpha, red, green, blue, weight } = shades;
  const { highlight, only } = fading;
  for (let i = 0; i < count; i++) {
    const bar = packed.bar[i]!;
    const index = data.colour[bar]!;
    const [r, g, b] = palette[index] ?? [128, 128, 128];
    const shown = (only === null || only === index) && (!highlight || highlight.has(bar));
    const seen = shown ? 1 : FADED;
    const part = (packed.end[i]! - packed.start[i]!) * seen;
    colour[3 * i] = r;
    colour[3 * i + 1] = g;
    colour[3 * i + 2] = b;
    alpha[i] = seen;
    red[i + 1] = red[i]! + part * r;
    green[i + 1] = green[i]! + part * g;
    blue[i + 1] = blue[i]! + part * b;
    weight[i + 1] = weight[i]! + part;
  }
  return shades;
}
