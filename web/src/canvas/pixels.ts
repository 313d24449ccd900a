/** Red, green and blue, 0 to 255. */
export type Rgb = [number, number, number];

let probe: CanvasRenderingContext2D | null = null;

/** The parts of a colour, however CSS writes it. What is not a colour is black. */
export function rgb(colour: string): Rgb {
  probe ??= document.createElement("canvas").getContext("2d")!;
  probe.fillStyle = "#000000";
  probe.fillStyle = colour;
  const text = String(probe.fillStyle);
  if (text.startsWith("#")) {
    const value = parseInt(text.slice(1), 16);
    return [value >> 16, (value >> 8) & 255, value & 255];
  }
  const parts = text.match(/[\d.]+/g) ?? [];
  return [Number(parts[0] ?? 0), Number(parts[1] ?? 0), Number(parts[2] ?? 0)];
}

/** An opaque pixel as image data has it on all machines that browsers run on (little endian). */
export function pixel(r: number, g: number, b: number): number {
  return (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;
}

/** Between two colours; 0 is the first. */
export function mixed(a: Rgb, b: Rgb, share: number): Rgb {
  return [a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share, a[2] + (b[2] - a[2]) * share];
}

/**
 * Pixels that are computed one by one. Where there are more shapes than pixels this is many times as quick as asking the canvas
 * to draw each of them.
 */
export class Pixels {
  width = 0;
  height = 0;
  data = new Uint32Array(0);
  private image: ImageData | null = null;

  resize(width: number, height: number) {
    if (width === this.width && height === this.height) return;
    this.width = width;
    this.height = height;
    this.image = new ImageData(Math.max(width, 1), Math.max(height, 1));
    this.data = new Uint32Array(this.image.data.buffer);
  }

  /** A rectangle, cut off where it leaves the picture. */
  fill(x0: number, y0: number, x1: number, y1: number, value: number) {
    const left = Math.max(x0, 0);
    const right = Math.min(x1, this.width);
    if (right <= left) return;
    for (let y = Math.max(y0, 0); y < Math.min(y1, this.height); y++) {
      this.data.fill(value, y * this.width + left, y * this.width + right);
    }
  }

  /** Puts everything onto a canvas, at a position in pixels of the screen. */
  show(context: CanvasRenderingContext2D, x: number, y: number) {
    if (this.image) context.putImageData(this.image, x, y);
  }
}
