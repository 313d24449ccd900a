import { Density } from "../canvas/density";
import { mixed, Pixels, pixel, rgb } from "../canvas/pixels";
import type { Surface } from "../canvas/surface";
import { graphColours, type GraphColours } from "./graphColours";
import { STANDINGS } from "./graphModel";
import { NodePainter } from "./graphNode";
import type { GraphScene } from "./graphScene";

/** Nodes that are lower than this on the screen are spots of colour; below the second, they have no text. */
const SPOT = 9;
const TEXT = 15;
/** More edges than this are counted instead of drawn. */
const MANY = 900;

/** Draws a graph. From afar it is pixels, from near it is boxes with words in them. */
export class GraphPainter {
  private readonly pixels = new Pixels();
  private readonly density = new Density();
  private nodes = new NodePainter(graphColours());

  /** The theme is another one. */
  restyle() {
    this.nodes = new NodePainter(graphColours());
  }

  private get colours(): GraphColours {
    return this.nodes.colours;
  }

  paint(surface: Surface, scene: GraphScene) {
    const { context, width, height } = surface;
    const { plane, model } = scene;
    plane.resize({ width, height });
    const { scale } = plane;
    const left = plane.x;
    const top = plane.y;
    const right = left + width / scale;
    const bottom = top + height / scale;
    const nodes: number[] = [];
    model.nodeBands.within(top, bottom, (i) => {
      const node = model.view.nodes[i]!;
      if (node.x <= right && node.x + node.width >= left) nodes.push(i);
    });
    const edges: number[] = [];
    model.edgeBands.within(top, bottom, (i) => {
      const [from, to] = model.view.edges[i]!;
      const a = model.view.nodes[from]!;
      const b = model.view.nodes[to]!;
      if (Math.min(a.x, b.x) <= right && Math.max(a.x + a.width, b.x + b.width) >= left) edges.push(i);
    });
    const tall = (model.view.nodes[0]?.height ?? 44) * scale;
    const many = edges.length > MANY || tall < SPOT;
    if (many) this.far(surface, scene, nodes, edges, tall < SPOT);
    else {
      context.fillStyle = this.colours.paper;
      context.fillRect(0, 0, width, height);
    }
    context.save();
    context.scale(scale, scale);
    context.translate(-left, -top);
    if (!many) this.edges(context, scene, edges);
    this.strongEdges(context, scene);
    if (tall >= SPOT) {
      context.textBaseline = "middle";
      for (const i of nodes) this.nodes.draw(context, scene, i, tall >= TEXT);
    }
    this.outlines(context, scene, tall < SPOT ? nodes : []);
    context.restore();
  }

  /** Many edges, and nodes that are too small for anything but a colour, pixel by pixel. */
  private far(surface: Surface, scene: GraphScene, nodes: number[], edges: number[], spots: boolean) {
    const { plane, model } = scene;
    const scale = plane.scale * surface.ratio;
    const wide = surface.canvas.width;
    const high = surface.canvas.height;
    this.pixels.resize(wide, high);
    this.density.reset(wide, high);
    for (const i of edges) {
      const [from, to] = model.view.edges[i]!;
      const a = model.view.nodes[from]!;
      const b = model.view.nodes[to]!;
      this.curve(
        (a.x + a.width / 2 - plane.x) * scale,
        (a.y + a.height - plane.y) * scale,
        (b.x + b.width / 2 - plane.x) * scale,
        (b.y - plane.y) * scale,
      );
    }
    this.density.show(this.pixels, rgb(this.colours.paper), rgb(this.colours.soft), edges.length > 8000 ? 0.14 : 0.3);
    if (spots) {
      const shades = STANDINGS.map((s) => {
        const [r, g, b] = rgb(this.colours.standing[s]);
        return pixel(r, g, b);
      });
      const faded = STANDINGS.map((s) => {
        const [r, g, b] = mixed(rgb(this.colours.paper), rgb(this.colours.standing[s]), 0.3);
        return pixel(r, g, b);
      });
      for (const i of nodes) {
        const node = model.view.nodes[i]!;
        const x = Math.round((node.x - plane.x) * scale);
        const y = Math.round((node.y - plane.y) * scale);
        const shade = scene.path && !scene.path.nodes.has(i) ? faded : shades;
        const x1 = Math.max(Math.round((node.x + node.width - plane.x) * scale), x + 1);
        const y1 = Math.max(Math.round((node.y + node.height - plane.y) * scale), y + 1);
        this.pixels.fill(x, y, x1, y1, shade[scene.standings[i]!]!);
      }
    }
    this.pixels.show(surface.context, 0, 0);
  }

  /** The curve that near edges have, in as many straight pieces as can be seen. */
  private curve(x0: number, y0: number, x1: number, y1: number) {
    const pieces = Math.min(Math.max(Math.round((Math.abs(x1 - x0) + Math.abs(y1 - y0)) / 30), 1), 12);
    let x = x0;
    let y = y0;
    for (let i = 1; i <= pieces; i++) {
      const t = i / pieces;
      const s = 1 - t;
      const middle = (y0 + y1) / 2;
      const nx = (s * s * s + 3 * s * s * t) * x0 + (3 * s * t * t + t * t * t) * x1;
      const ny = s * s * s * y0 + 3 * s * s * t * middle + 3 * s * t * t * middle + t * t * t * y1;
      this.density.line(x, y, nx, ny);
      x = nx;
      y = ny;
    }
  }

  private trace(context: CanvasRenderingContext2D, scene: GraphScene, edge: number) {
    const [from, to] = scene.model.view.edges[edge]!;
    const a = scene.model.view.nodes[from]!;
    const b = scene.model.view.nodes[to]!;
    const x0 = a.x + a.width / 2;
    const y0 = a.y + a.height;
    const x1 = b.x + b.width / 2;
    const middle = (y0 + b.y) / 2;
    context.moveTo(x0, y0);
    context.bezierCurveTo(x0, middle, x1, middle, x1, b.y - 5);
  }

  private tip(context: CanvasRenderingContext2D, scene: GraphScene, edge: number) {
    const b = scene.model.view.nodes[scene.model.view.edges[edge]![1]]!;
    const x = b.x + b.width / 2;
    context.moveTo(x, b.y - 0.5);
    context.lineTo(x - 4, b.y - 7);
    context.lineTo(x + 4, b.y - 7);
    context.closePath();
  }

  private edges(context: CanvasRenderingContext2D, scene: GraphScene, edges: number[]) {
    context.lineWidth = 1.3;
    context.strokeStyle = this.colours.strong;
    context.fillStyle = this.colours.strong;
    context.globalAlpha = scene.path ? 0.45 : 1;
    for (const orderOnly of [false, true]) {
      context.setLineDash(orderOnly ? [5, 4] : []);
      context.beginPath();
      for (const i of edges) if (scene.model.view.edges[i]![2] === orderOnly) this.trace(context, scene, i);
      context.stroke();
    }
    context.setLineDash([]);
    context.beginPath();
    for (const i of edges) this.tip(context, scene, i);
    context.fill();
    context.globalAlpha = 1;
  }

  /** The critical path, and the edges of the selected node. */
  private strongEdges(context: CanvasRenderingContext2D, scene: GraphScene) {
    const { selected, path, model } = scene;
    const pen = 1 / Math.min(scene.plane.scale, 1);
    const draw = (edges: Iterable<number>, colour: string, width: number) => {
      context.strokeStyle = context.fillStyle = colour;
      context.lineWidth = width * pen;
      context.beginPath();
      for (const i of edges) this.trace(context, scene, i);
      context.stroke();
      context.beginPath();
      for (const i of edges) this.tip(context, scene, i);
      context.fill();
    };
    if (path) draw(path.edges, this.colours.path, 3);
    if (selected >= 0) draw(model.edgesOf[selected] ?? [], this.colours.ink, 1.6);
  }

  /** What is selected or pointed at; from afar, also what failed, runs, or is on the critical path, because spots are small. */
  private outlines(context: CanvasRenderingContext2D, scene: GraphScene, spots: number[]) {
    const pen = 1 / Math.min(scene.plane.scale, 1);
    const box = (i: number, away: number) => {
      const node = scene.model.view.nodes[i];
      if (node) context.rect(node.x - away * pen, node.y - away * pen, node.width + 2 * away * pen, node.height + 2 * away * pen);
    };
    const failed = STANDINGS.indexOf("failed");
    const bad = spots.filter((i) => scene.standings[i] === failed);
    for (const [nodes, colour, width, away] of [
      [bad, this.colours.standing.failed, 1.5, 1.5],
      [[scene.hovered], this.colours.ink, 1.2, 2.5],
      [[scene.selected], this.colours.ink, 2.6, 3.5],
    ] as const) {
      context.strokeStyle = colour;
      context.lineWidth = width * pen;
      context.beginPath();
      for (const i of nodes) box(i, away);
      context.stroke();
    }
  }
}
