import { wheelFactor, type Gestures, type Point } from "../canvas/gestures";
import type { Surface } from "../canvas/surface";
import type { GraphScene } from "./graphScene";

/** Whom to tell what the user does with a graph. */
export interface GraphListener {
  /** Another node was chosen, or none (-1). */
  select(node: number): void;
  /** More is to be known about a node. */
  open(node: number): void;
  /** The same, and the user wants to go there. */
  enter(node: number): void;
  /** The pointer is above a node, or above none (-1). */
  point(node: number, at: Point): void;
}

const ARROWS: Record<string, Point> = {
  ArrowUp: { x: 0, y: -1 },
  ArrowDown: { x: 0, y: 1 },
  ArrowLeft: { x: -1, y: 0 },
  ArrowRight: { x: 1, y: 0 },
};
const STEP = 80;

/** Turns gestures and keys into changes of what is looked at. */
export class GraphHands implements Gestures {
  constructor(
    private readonly surface: Surface,
    private readonly scene: () => GraphScene,
    private readonly listener: GraphListener,
  ) {}

  grab() {
    // Whatever is held, dragging moves the whole.
  }

  drag(by: Point) {
    this.scene().plane.pan(by);
    this.surface.invalidate();
  }

  click(at: Point) {
    const node = this.nodeUnder(at);
    this.listener.select(node);
    if (node >= 0) this.listener.open(node);
  }

  hover(at: Point | null) {
    const scene = this.scene();
    const node = at ? this.nodeUnder(at) : -1;
    if (node !== scene.hovered) {
      scene.hovered = node;
      this.surface.invalidate();
    }
    this.listener.point(node, at ?? { x: 0, y: 0 });
  }

  private nodeUnder(at: Point): number {
    const { plane, model } = this.scene();
    const point = plane.at(at);
    return model.at(point.x, point.y);
  }

  wheel(by: Point, at: Point, event: WheelEvent) {
    const { plane } = this.scene();
    if (event.shiftKey || Math.abs(by.x) > Math.abs(by.y)) plane.pan({ x: -(by.x || by.y), y: 0 });
    else plane.zoom(1 / wheelFactor(event.ctrlKey ? by.y * 4 : by.y), at);
    this.surface.invalidate();
  }

  pinch(factor: number, by: Point, at: Point) {
    const { plane } = this.scene();
    plane.zoom(factor, at);
    plane.pan(by);
    this.surface.invalidate();
  }

  key(event: KeyboardEvent): boolean {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const known = this.press(event);
    if (known) this.surface.invalidate();
    return known;
  }

  private press(event: KeyboardEvent): boolean {
    const { plane, selected, model } = this.scene();
    const arrow = ARROWS[event.key];
    if (arrow && event.shiftKey) {
      plane.pan({ x: -arrow.x * STEP, y: -arrow.y * STEP });
      return true;
    }
    if (arrow) {
      this.go(selected < 0 ? 0 : model.towards(selected, arrow.x, arrow.y));
      return true;
    }
    switch (event.key) {
      case "+":
      case "=":
        plane.zoom(1.4, plane.middle);
        return true;
      case "-":
        plane.zoom(1 / 1.4, plane.middle);
        return true;
      case "0":
        plane.fit();
        return true;
      case "Home":
        this.go(0);
        return true;
      case "End":
        this.go(model.view.nodes.length - 1);
        return true;
      case "Enter":
        if (selected < 0) return false;
        this.listener.enter(selected);
        return true;
      case "Escape":
        if (selected < 0) return false;
        this.listener.select(-1);
        return true;
      default:
        return false;
    }
  }

  private go(node: number) {
    const { plane, model } = this.scene();
    const box = model.view.nodes[node];
    if (!box) return;
    this.listener.select(node);
    plane.reveal(box.x, box.y, box.width, box.height);
  }
}
