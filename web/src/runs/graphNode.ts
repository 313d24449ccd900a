import { CHAIN_STATE_CODES, type GraphView } from "../api/types";
import { FONT } from "../canvas/surface";
import { number } from "../ui/format";
import { CHAIN_STATES } from "../ui/states";
import type { GraphColours } from "./graphColours";
import { STANDINGS, type Standing } from "./graphModel";
import type { GraphScene } from "./graphScene";
import { shortCounts, signOf } from "./graphWords";

const NAME = `600 13px ${FONT}`;
const SMALL = `11px ${FONT}`;
/** The narrowest part of the bar of a node. */
const LEAST = 3;

/** Draws single nodes, as boxes with words in them. */
export class NodePainter {
  private readonly widths = new Map<string, number>();

  constructor(readonly colours: GraphColours) {}

  draw(context: CanvasRenderingContext2D, scene: GraphScene, i: number, withText: boolean) {
    const node = scene.model.view.nodes[i]!;
    const is = STANDINGS[scene.standings[i]!]!;
    const onPath = scene.path?.nodes.has(i) ?? false;
    context.globalAlpha = scene.path && !onPath && i !== scene.selected ? 0.5 : 1;
    const strong = is === "failed" || is === "running";
    context.beginPath();
    context.roundRect(node.x, node.y, node.width, node.height, 6);
    context.fillStyle = this.colours.wash[is];
    context.fill();
    context.lineWidth = strong ? 2.4 : 1.2;
    context.strokeStyle = is === "none" ? this.colours.strong : this.colours.standing[is];
    if (node.conditional) context.setLineDash([5, 3]);
    context.stroke();
    if (node.conditional) context.setLineDash([]);
    if (node.over) this.pile(context, node, this.colours.standing[is]);
    if (withText) this.words(context, scene, i, is);
    this.bar(context, scene, i);
    context.globalAlpha = 1;
  }

  /** A second and a third card behind the first: there are many of them. */
  private pile(context: CanvasRenderingContext2D, node: GraphView["nodes"][number], colour: string) {
    context.strokeStyle = colour;
    context.lineWidth = 1.2;
    context.beginPath();
    for (const away of [3.5, 7]) {
      context.moveTo(node.x + 6 + away, node.y + node.height + away);
      context.lineTo(node.x + node.width + away - 4, node.y + node.height + away);
      context.lineTo(node.x + node.width + away, node.y + node.height + away - 4);
      context.lineTo(node.x + node.width + away, node.y + 6 + away);
    }
    context.stroke();
  }

  private words(context: CanvasRenderingContext2D, scene: GraphScene, i: number, is: Standing) {
    const node = scene.model.view.nodes[i]!;
    const step = scene.steps[i]!;
    const total = scene.board && step >= 0 ? scene.board.totalOf(step) : 0;
    const left = node.x + 9;
    const right = node.x + node.width - 9;
    let room = node.width - 18;
    context.font = NAME;
    context.textAlign = "left";
    context.fillStyle = this.colours.standing[is];
    context.fillText(signOf(is), left, node.y + 13);
    room -= 15;
    const times = node.over || total > 1 ? `×${total > 0 ? number(total) : "?"}` : "";
    context.font = SMALL;
    const timesWidth = times ? this.measure(context, times, SMALL) + 6 : 0;
    const nameWidth = Math.min(this.measure(context, node.name, NAME), room);
    if (times && room - nameWidth >= timesWidth) {
      context.textAlign = "right";
      context.fillStyle = this.colours.soft;
      context.fillText(times, right, node.y + 13);
    }
    context.textAlign = "left";
    context.font = NAME;
    context.fillStyle = this.colours.ink;
    context.fillText(this.cut(context, node.name, NAME, room), left + 15, node.y + 13);
    context.font = SMALL;
    const counts = shortCounts(scene.board, step).find((text) => this.measure(context, text, SMALL) <= node.width - 18);
    let rest = node.width - 18;
    if (counts) {
      context.textAlign = "right";
      context.fillStyle = this.colours.ink;
      context.fillText(counts, right, node.y + 28);
      rest -= this.measure(context, counts, SMALL) + 8;
      context.textAlign = "left";
    }
    context.fillStyle = this.colours.soft;
    if (rest > 24) context.fillText(this.cut(context, node.service, SMALL, rest), left, node.y + 28);
  }

  /** How many chains are in which state, along the lower side. */
  private bar(context: CanvasRenderingContext2D, scene: GraphScene, i: number) {
    const { board, steps, model } = scene;
    const step = steps[i]!;
    const total = board && step >= 0 ? board.totalOf(step) : 0;
    if (!board || total === 0) return;
    const node = model.view.nodes[i]!;
    const counts = CHAIN_STATES.map((state) => board.countOf(step, CHAIN_STATE_CODES.indexOf(state)));
    // The few that failed among thousands are to be seen, too.
    const least = (n: number) => (n === 0 ? 0 : LEAST);
    const wide = node.width - 12 - counts.reduce((sum, n) => sum + least(n), 0);
    const alpha = context.globalAlpha;
    let x = node.x + 6;
    CHAIN_STATES.forEach((state, which) => {
      const part = least(counts[which]!) + (wide * counts[which]!) / total;
      context.fillStyle = this.colours.standing[state];
      context.globalAlpha = state === "registered" ? alpha * 0.4 : alpha;
      context.fillRect(x, node.y + node.height - 8, part, 4.5);
      x += part;
    });
    context.globalAlpha = alpha;
  }

  private measure(context: CanvasRenderingContext2D, text: string, font: string): number {
    const key = font[0] + text;
    let width = this.widths.get(key);
    if (width === undefined) {
      if (this.widths.size > 50_000) this.widths.clear();
      const before = context.font;
      context.font = font;
      width = context.measureText(text).width;
      context.font = before;
      this.widths.set(key, width);
    }
    return width;
  }

  private cut(context: CanvasRenderingContext2D, text: string, font: string, room: number): string {
    const width = this.measure(context, text, font);
    if (width <= room) return text;
    return `${text.slice(0, Math.max(Math.floor((text.length * room) / width) - 1, 1))}…`;
  }
}
