import { token } from "../ui/colours";
import { MARK } from "./lanesData";
import { frameOf, perPixel, type Frame } from "./lanesFrame";
import type { LanesScene } from "./lanesScene";
import { markAfter, Stamps } from "./marks";
import { Pixels, pixel, rgb } from "./pixels";
import { RowRaster } from "./rowRaster";
import { FONT, type Surface } from "./surface";
import { timeTicks, type Tick } from "./ticks";

/** More signs than this are too many to be read, and to be drawn in time. */
const MOST_MARKS = 900;

interface Colours {
  paper: string;
  ground: string;
  line: string;
  strong: string;
  ink: string;
  soft: string;
  accent: string;
  failed: string;
  lost: string;
  halo: string;
}

function colours(): Colours {
  return {
    paper: token("paper"),
    ground: token("ground"),
    line: token("line"),
    strong: token("line-strong"),
    ink: token("ink"),
    soft: token("soft"),
    accent: token("accent"),
    failed: token("state-failed"),
    lost: token("ink"),
    halo: token("halo"),
  };
}

/** Draws lanes. Keeps what can be used again for the next frame. */
export class LanesPainter {
  private readonly pixels = new Pixels();
  private readonly raster = new RowRaster();
  private readonly stamps = new Stamps();
  private ground = new Uint32Array(0);
  private colours: Colours = colours();

  /** The theme is another one. */
  restyle() {
    this.colours = colours();
  }

  paint(surface: Surface, scene: LanesScene) {
    const { context, width, height } = surface;
    context.font = `12px ${FONT}`;
    context.textBaseline = "middle";
    if (scene.gutter === 0) scene.gutter = gutter(context, scene.data.lanes);
    const frame = frameOf(scene, width, height);
    scene.view.setRows(scene.packed, frame.height);
    const { from, to } = scene.view.span;
    const ticks = timeTicks(from, to, frame.width);
    context.fillStyle = this.colours.paper;
    context.fillRect(0, 0, width, height);
    this.bars(surface, scene, frame, ticks);
    this.signs(surface, scene, frame);
    this.outline(context, scene, frame, scene.hovered, this.colours.ink, 1);
    this.outline(context, scene, frame, scene.selected, this.colours.ink, 2.5);
    this.names(context, scene, frame);
    this.axis(context, scene, frame, ticks);
    this.strip(context, scene, frame, height);
  }

  /** All bars, pixel by pixel. */
  private bars(surface: Surface, scene: LanesScene, frame: Frame, ticks: Tick[]) {
    const { ratio, context } = surface;
    const { packed, shades, view } = scene;
    const x0 = Math.round(frame.left * ratio);
    const wide = Math.max(surface.canvas.width - x0, 1);
    const high = Math.max(Math.round(frame.height * ratio), 1);
    this.pixels.resize(wide, high);
    this.raster.resize(wide);
    const step = (view.span.to - view.span.from) / wide;
    const paper = pixel(...rgb(this.colours.paper));
    const line = pixel(...rgb(this.colours.line));
    if (this.ground.length !== wide) this.ground = new Uint32Array(wide);
    this.ground.fill(paper);
    for (const tick of ticks) this.ground[Math.round((tick.at - view.span.from) / step)] = line;
    const { data } = this.pixels;
    for (let y = 0; y < high; y++) data.set(this.ground, y * wide);
    const first = Math.max(view.laneAt(packed, 0), 0);
    const padding = view.rowHeight >= 5 ? 1 : 0;
    for (let row = packed.laneRow[first]!; row < packed.rows; row++) {
      const top = view.top(packed, row);
      if (top >= frame.height) break;
      const y0 = Math.max(Math.round(top * ratio), 0);
      const y1 = Math.min(Math.round((top + view.rowHeight) * ratio) - padding, high);
      if (y1 <= y0 || !this.raster.draw(packed, shades, row, view.span.from, step, this.ground)) continue;
      for (let y = y0; y < y1; y++) data.set(this.raster.line, y * wide);
    }
    if (view.gap > 0) this.separators(scene, frame, ratio, line);
    this.pixels.show(context, x0, Math.round(frame.top * ratio));
  }

  private separators(scene: LanesScene, frame: Frame, ratio: number, line: number) {
    const { packed, view } = scene;
    for (let lane = Math.max(view.laneAt(packed, 0), 0); lane + 1 < packed.laneRow.length; lane++) {
      const below = view.top(packed, packed.laneRow[lane + 1]! - 1) + view.rowHeight;
      if (below > frame.height) break;
      const y = Math.floor((below + view.gap / 2) * ratio);
      this.pixels.fill(0, y, this.pixels.width, y + 1, line);
    }
  }

  /** What happened to bars. The flatter the rows and the more of them, the fewer signs. */
  private signs(surface: Surface, scene: LanesScene, frame: Frame) {
    const { context, ratio } = surface;
    const { packed, view, data } = scene;
    const step = perPixel(scene, frame);
    const size = Math.min(Math.max(Math.round(view.rowHeight) - 1, 7), 12);
    const rows = Math.min(frame.height / view.rowHeight, packed.rows);
    const apart = Math.max(size + 2, (rows * frame.width) / MOST_MARKS);
    context.save();
    context.beginPath();
    context.rect(frame.left, frame.top, frame.width, frame.height);
    context.clip();
    const first = Math.max(view.laneAt(packed, 0), 0);
    let pattern: CanvasPattern | null = null;
    for (let row = packed.laneRow[first]!; row < packed.rows; row++) {
      const top = view.top(packed, row);
      if (top >= frame.height) break;
      if (top + view.rowHeight <= 0) continue;
      const y = frame.top + top;
      const middle = y + view.rowHeight / 2;
      const each = (marks: typeof scene.bad, gap: number, draw: (i: number, left: number, right: number) => void) => {
        let at = markAfter(marks, packed, row, view.span.from);
        const end = marks.rowFrom[row + 1]!;
        while (at < end) {
          const i = marks.at[at]!;
          if (packed.start[i]! >= view.span.to) break;
          const left = frame.left + (packed.start[i]! - view.span.from) / step;
          const right = frame.left + (packed.end[i]! - view.span.from) / step;
          draw(i, left, right);
          at = markAfter(marks, packed, row, packed.end[i]! + gap * step, at + 1);
        }
      };
      each(scene.vain, 1, (_, left, right) => {
        if (right - left < 3) return;
        pattern ??= this.hatching(context, ratio);
        context.fillStyle = pattern;
        context.fillRect(left, y, right - left - 1, view.rowHeight - 1);
      });
      if (view.rowHeight >= 9) {
        each(scene.retried, apart, (i, left, right) => {
          if (right - left < size + 2 || scene.shades.alpha[i]! < 1) return;
          this.stamps.stamp(context, MARK.retried, left + size / 2 + 1, middle - 0.5, size, ratio, this.colours.paper, this.colours.halo);
        });
      }
      each(scene.bad, apart, (i, left, right) => {
        if (scene.shades.alpha[i]! < 1) return;
        const mark = data.mark[packed.bar[i]!]!;
        const x = right - left > 2 * size ? right - size / 2 - 2 : (left + right) / 2;
        this.stamps.stamp(context, mark, x, middle - 0.5, size, ratio, mark === MARK.lost ? this.colours.lost : this.colours.failed, this.colours.paper);
      });
    }
    context.restore();
  }

  private hatching(context: CanvasRenderingContext2D, ratio: number): CanvasPattern {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const own = tile.getContext("2d")!;
    own.strokeStyle = this.colours.paper;
    own.lineWidth = 2.4;
    for (const x of [-8, 0, 8]) {
      own.moveTo(x, 8);
      own.lineTo(x + 8, 0);
    }
    own.stroke();
    const pattern = context.createPattern(tile, "repeat")!;
    pattern.setTransform(new DOMMatrix().scale(1 / ratio));
    return pattern;
  }

  private outline(context: CanvasRenderingContext2D, scene: LanesScene, frame: Frame, bar: number, colour: string, width: number) {
    if (bar < 0 || bar >= scene.packed.place.length) return;
    const { packed, view } = scene;
    const at = packed.place[bar]!;
    const step = perPixel(scene, frame);
    const left = Math.max((packed.start[at]! - view.span.from) / step, -4);
    const right = Math.min((packed.end[at]! - view.span.from) / step, frame.width + 4);
    const top = view.top(packed, packed.row[bar]!);
    if (right < -3 || left > frame.width + 3 || top > frame.height || top + view.rowHeight < 0) return;
    context.save();
    context.beginPath();
    context.rect(frame.left, frame.top, frame.width, frame.height);
    context.clip();
    context.strokeStyle = colour;
    context.lineWidth = width;
    const wide = Math.max(right - left, 3);
    context.strokeRect(frame.left + left - 1, frame.top + top - 1, wide + 1, Math.max(view.rowHeight, 4) + 1);
    context.restore();
  }

  /** Names of lanes. Those of high lanes stay in sight, and flat ones have a name only where there is room. */
  private names(context: CanvasRenderingContext2D, scene: LanesScene, frame: Frame) {
    const { packed, view, data } = scene;
    context.fillStyle = this.colours.ground;
    context.fillRect(0, frame.top, frame.left, frame.height);
    context.save();
    context.beginPath();
    context.rect(0, frame.top, frame.left - 6, frame.height);
    context.clip();
    context.fillStyle = this.colours.ink;
    context.textAlign = "left";
    let free = -Infinity;
    for (let lane = Math.max(view.laneAt(packed, 0), 0); lane < data.lanes.length; lane++) {
      const top = view.top(packed, packed.laneRow[lane]!);
      if (top >= frame.height) break;
      const bottom = top + (packed.laneRow[lane + 1]! - packed.laneRow[lane]!) * view.rowHeight;
      const seen = (Math.max(top, 0) + Math.min(bottom, frame.height)) / 2;
      const middle = Math.min(Math.max(seen, top + 7), Math.max(bottom - 7, top + 7));
      if (middle - 7 < free) continue;
      free = middle + 7;
      context.fillText(short(context, data.lanes[lane]!, frame.left - 16), 8, frame.top + middle);
    }
    context.restore();
    context.fillStyle = this.colours.strong;
    context.fillRect(frame.left - 1, frame.top, 1, frame.height);
  }

  private axis(context: CanvasRenderingContext2D, scene: LanesScene, frame: Frame, ticks: Tick[]) {
    context.fillStyle = this.colours.ground;
    context.fillRect(0, 0, frame.left + frame.width, frame.top);
    context.fillStyle = this.colours.strong;
    context.fillRect(0, frame.top - 1, frame.left + frame.width, 1);
    context.fillStyle = this.colours.soft;
    const step = perPixel(scene, frame);
    const edge = frame.left + frame.width;
    for (const tick of ticks) {
      const x = frame.left + (tick.at - scene.view.span.from) / step;
      context.fillRect(Math.round(x), frame.top - 6, 1, 6);
      context.textAlign = "center";
      const half = context.measureText(tick.label).width / 2;
      context.fillText(tick.label, Math.min(Math.max(x, half + 4), edge - half - 4), frame.top / 2 - 1);
    }
  }

  /** How many were busy all the time, and which part of it is looked at. */
  private strip(context: CanvasRenderingContext2D, scene: LanesScene, frame: Frame, height: number) {
    const { busy, most } = scene.overview;
    const { span, bounds } = scene.view;
    const top = frame.strip;
    context.fillStyle = this.colours.ground;
    context.fillRect(0, top, frame.left + frame.width, height - top);
    context.fillStyle = this.colours.strong;
    context.fillRect(0, top, frame.left + frame.width, 1);
    context.fillStyle = this.colours.soft;
    context.textAlign = "left";
    context.fillText(short(context, `${Math.round(most)} at once`, frame.left - 12), 8, top + (height - top) / 2);
    context.globalAlpha = 0.55;
    context.beginPath();
    context.moveTo(frame.left, height);
    const tall = height - top - 6;
    busy.forEach((count, bin) => {
      const y = height - (count / Math.max(most, 1e-9)) * tall;
      context.lineTo(frame.left + (bin / busy.length) * frame.width, y);
      context.lineTo(frame.left + ((bin + 1) / busy.length) * frame.width, y);
    });
    context.lineTo(frame.left + frame.width, height);
    context.fill();
    context.globalAlpha = 1;
    const scale = frame.width / (bounds.to - bounds.from);
    const left = frame.left + (span.from - bounds.from) * scale;
    const wide = Math.max((span.to - span.from) * scale, 3);
    context.globalAlpha = 0.16;
    context.fillStyle = this.colours.accent;
    context.fillRect(left, top + 1, wide, height - top - 1);
    context.globalAlpha = 1;
    context.strokeStyle = this.colours.accent;
    context.lineWidth = 1.5;
    context.strokeRect(left + 0.75, top + 1.75, Math.max(wide - 1.5, 1), height - top - 2.5);
  }
}

function gutter(context: CanvasRenderingContext2D, names: string[]): number {
  // The longest names by their characters are the widest, nearly.
  const longest = [...names].sort((a, b) => b.length - a.length).slice(0, 8);
  const widest = Math.max(...longest.map((name) => context.measureText(name).width), context.measureText("64 at once").width);
  return Math.ceil(Math.min(widest + 20, 190));
}

/** Cut in the middle, because names of machines often differ at their end. */
function short(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (context.measureText(text).width <= room) return text;
  let kept = text.length - 1;
  for (; kept > 2; kept--) {
    const head = Math.ceil(kept / 2);
    const cut = `${text.slice(0, head)}…${text.slice(text.length - (kept - head))}`;
    if (context.measureText(cut).width <= room) return cut;
  }
  return text.slice(0, 2);
}
