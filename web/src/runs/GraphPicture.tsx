import { useEffect, useId, useMemo, useRef } from "react";
import { useTheme } from "../app/theme";
import { listen } from "../canvas/gestures";
import { Plane } from "../canvas/plane";
import { Surface } from "../canvas/surface";
import { Tooltip } from "../canvas/tooltip";
import canvasStyles from "../canvas/canvas.module.css";
import { count } from "../ui/format";
import { Button, classes } from "../ui/parts";
import type { BoardView } from "./board";
import { GraphHands } from "./graphHands";
import type { GraphModel, GraphPath } from "./graphModel";
import { GraphPainter } from "./graphPaint";
import { standingsOf, type GraphScene } from "./graphScene";
import { sayStep } from "./graphWords";
import styles from "./board.module.css";

export interface GraphPictureProps {
  model: GraphModel;
  /** Another object whenever something has changed. */
  view: BoardView;
  /** The steps of the board that the nodes are. */
  steps: Int32Array;
  path: GraphPath | null;
  selected: number;
  onSelect: (node: number) => void;
  onOpen: (node: number) => void;
  onEnter: (node: number) => void;
  /** A node to be brought into the middle; another object each time. */
  sought: { node: number } | null;
}

/** So close is a node that was looked for. */
const READABLE = 0.9;

interface Machine {
  surface: Surface;
  scene: GraphScene;
  painter: GraphPainter;
}

/** The graph itself. */
export function GraphPicture(props: GraphPictureProps) {
  const { model, view, steps, path, selected, sought } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const tooltip = useRef<HTMLDivElement>(null);
  const machine = useRef<Machine>(null);
  const latest = useRef(props);
  latest.current = props;
  const theme = useTheme();
  const help = useId();

  useEffect(() => {
    const plane = new Plane();
    plane.setContent(model.view);
    const scene: GraphScene = { model, plane, board: null, steps, standings: new Uint8Array(0), path: null, selected: -1, hovered: -1 };
    const painter = new GraphPainter();
    const surface = new Surface(canvas.current!, () => painter.paint(surface, scene));
    const hint = new Tooltip(tooltip.current!);
    const say = (node: number) => sayStep(model, node, latest.current.view.state, latest.current.steps[node]!);
    const stop = listen(
      canvas.current!,
      new GraphHands(surface, () => scene, {
        select: (node) => latest.current.onSelect(node),
        open: (node) => latest.current.onOpen(node),
        enter: (node) => latest.current.onEnter(node),
        point: (node, at) => hint.show(node < 0 ? null : say(node).replace(", ", "\n"), at),
      }),
    );
    machine.current = { surface, scene, painter };
    return () => {
      stop();
      surface.dispose();
      machine.current = null;
    };
  }, [model]);

  useEffect(() => {
    const current = machine.current;
    if (!current) return;
    Object.assign(current.scene, { board: view.state, steps, standings: standingsOf(view.state, steps), path, selected });
    current.surface.invalidate();
  }, [model, view, steps, path, selected]);

  useEffect(() => {
    machine.current?.painter.restyle();
    machine.current?.surface.invalidate();
  }, [model, theme]);

  useEffect(() => {
    const box = sought && model.view.nodes[sought.node];
    if (!box || !machine.current) return;
    // The size of the window is only known once it was drawn.
    const { plane } = machine.current.scene;
    plane.resize({ width: canvas.current!.clientWidth, height: canvas.current!.clientHeight });
    plane.centre({ x: box.x + box.width / 2, y: box.y + box.height / 2 }, READABLE);
    machine.current.surface.invalidate();
  }, [model, sought]);

  // How a step stood when it was chosen: while it goes on, every change would be read aloud.
  const said = useMemo(() => (selected < 0 ? "" : sayStep(model, selected, view.state, steps[selected]!)), [model, selected, view.state, steps]);

  const turn = (change: (plane: Plane) => void) => {
    if (!machine.current) return;
    change(machine.current.scene.plane);
    machine.current.surface.invalidate();
  };

  return (
    <div className={classes(canvasStyles.frame, styles.graph)}>
      <canvas
        ref={canvas}
        className={canvasStyles.canvas}
        role="application"
        aria-label={`Graph of ${count(model.view.nodes.length, "step")}`}
        aria-describedby={help}
        tabIndex={0}
      />
      <div className={styles.floating} role="group" aria-label="View">
        <Button aria-label="Zoom in" title="Zoom in (+)" onClick={() => turn((plane) => plane.zoom(1.4, plane.middle))}>
          +
        </Button>
        <Button aria-label="Zoom out" title="Zoom out (-)" onClick={() => turn((plane) => plane.zoom(1 / 1.4, plane.middle))}>
          −
        </Button>
        <Button title="Show everything (0)" onClick={() => turn((plane) => plane.fit())}>
          Fit
        </Button>
      </div>
      <div ref={tooltip} className={canvasStyles.tooltip} aria-hidden="true" hidden />
      <p id={help} className="visually-hidden">
        Arrow keys go from step to step along the edges, Enter opens the selected one. With Shift they move the view. Plus and minus zoom, 0
        shows everything, Home and End go to the first and the last step.
      </p>
      <div className="visually-hidden" role="status" aria-live="polite">
        {said}
      </div>
    </div>
  );
}
