import { useEffect, useId, useRef, useState } from "react";
import { useTheme } from "../app/theme";
import { Button } from "../ui/parts";
import { listen, type Point } from "./gestures";
import type { LanesData } from "./lanesData";
import { highest } from "./lanesFrame";
import { LanesHands } from "./lanesHands";
import { LanesPainter } from "./lanesPaint";
import { LanesScene } from "./lanesScene";
import { Legend } from "./Legend";
import { Surface } from "./surface";
import { Tooltip } from "./tooltip";
import styles from "./canvas.module.css";

export { MARK, type LanesData } from "./lanesData";

export interface LanesProps {
  data: LanesData;
  /** What the picture is, for those who cannot see it. */
  label: string;
  /** Says what a bar is, in a few words. */
  describe: (bar: number) => string;
  selected?: number | null;
  onSelect?: (bar: number | null) => void;
  /** A bar was clicked, or Enter pressed on the selected one. */
  onOpen?: (bar: number) => void;
  /** Bars to be pointed out, the others fade. */
  highlight?: Set<number>;
  /** The end of the time axis, where several pictures are to be compared; the last bar if none is given. */
  until?: number;
  height?: number;
  /** More bars are coming. The axis follows them until the user looks elsewhere. */
  live?: boolean;
}

/** What the parts of the picture share, made once there is a canvas. */
interface Machine {
  surface: Surface;
  scene: LanesScene;
  painter: LanesPainter;
}

/** Who was busy with what when: a lane each, zoomable. */
export function Lanes(props: LanesProps) {
  const { data, label, highlight, until, height, live = false } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const tooltip = useRef<HTMLDivElement>(null);
  const machine = useRef<Machine>(null);
  const latest = useRef(props);
  latest.current = props;
  const theme = useTheme();
  const help = useId();
  const [only, setOnly] = useState<number | null>(null);
  const [own, setOwn] = useState(-1);
  /** What was chosen, as it was then: bars that go on would be read aloud again and again. */
  const [said, setSaid] = useState("");
  const [following, setFollowing] = useState(true);
  const [room, setRoom] = useState<number>();
  const selected = props.selected === undefined ? own : (props.selected ?? -1);

  useEffect(() => {
    const element = canvas.current!;
    const scene = new LanesScene();
    const painter = new LanesPainter();
    const surface = new Surface(element, () => painter.paint(surface, scene));
    const hint = new Tooltip(tooltip.current!);
    const stop = listen(
      element,
      new LanesHands(surface, scene, {
        select(bar) {
          setOwn(bar);
          setSaid(bar < 0 ? "" : sayBar(latest.current, bar));
          latest.current.onSelect?.(bar < 0 ? null : bar);
        },
        open: (bar) => latest.current.onOpen?.(bar),
        point: (bar: number, at: Point) => hint.show(bar < 0 ? null : sayBar(latest.current, bar), at),
        look: () => setFollowing(scene.view.following),
      }),
    );
    machine.current = { surface, scene, painter };
    return () => {
      stop();
      surface.dispose();
      machine.current = null;
    };
  }, []);

  // The effects below run in this order after the one above, also the first time.
  useEffect(() => {
    if (!machine.current) return;
    machine.current.scene.show(data, until, live);
    machine.current.surface.invalidate();
    setRoom(highest(machine.current.scene));
  }, [data, until, live]);

  useEffect(() => {
    machine.current?.scene.fade({ highlight, only });
    machine.current?.surface.invalidate();
  }, [highlight, only]);

  useEffect(() => {
    machine.current?.painter.restyle();
    machine.current?.surface.invalidate();
  }, [theme]);

  useEffect(() => {
    if (machine.current) machine.current.scene.selected = selected;
    machine.current?.surface.invalidate();
  }, [selected, data]);

  const turn = (change: (scene: LanesScene) => void) => {
    if (!machine.current) return;
    change(machine.current.scene);
    machine.current.surface.invalidate();
    setFollowing(machine.current.scene.view.following);
  };
  const middle = (scene: LanesScene) => (scene.view.span.from + scene.view.span.to) / 2;

  return (
    <div className={styles.lanes}>
      <div className={styles.bar}>
        <Legend data={data} only={only} onOnly={setOnly} />
        <div className={styles.tools} role="group" aria-label="View">
          {live && !following && (
            <Button look="primary" onClick={() => turn((scene) => scene.view.follow())} title="Show what happens now">
              Follow
            </Button>
          )}
          <Button aria-label="Higher lanes" title="Higher lanes (Shift and arrow up, or Shift and wheel)" onClick={() => turn((scene) => scene.view.zoomRows(1.5, 0))}>
            ↕+
          </Button>
          <Button aria-label="Flatter lanes" title="Flatter lanes (Shift and arrow down)" onClick={() => turn((scene) => scene.view.zoomRows(1 / 1.5, 0))}>
            ↕−
          </Button>
          <Button aria-label="Zoom in" title="Zoom in (+)" onClick={() => turn((scene) => scene.view.zoom(1 / 1.5, middle(scene)))}>
            +
          </Button>
          <Button aria-label="Zoom out" title="Zoom out (-)" onClick={() => turn((scene) => scene.view.zoom(1.5, middle(scene)))}>
            −
          </Button>
          <Button title="Show everything (0)" onClick={() => turn((scene) => scene.view.fit())}>
            Fit
          </Button>
        </div>
      </div>
      <div className={styles.frame} style={height ? { height } : { maxHeight: room }}>
        <canvas ref={canvas} className={styles.canvas} role="application" aria-label={label} aria-describedby={help} tabIndex={0} />
        <div ref={tooltip} className={styles.tooltip} aria-hidden="true" hidden />
      </div>
      <p id={help} className="visually-hidden">
        Arrow keys move the view, plus and minus zoom, 0 shows everything, Home and End go to the beginning and the end. Shift with arrow up or
        down makes lanes higher or flatter. Square brackets, or Alt with arrow keys, choose a bar, Enter opens it.
      </p>
      <div className="visually-hidden" role="status" aria-live="polite">
        {said}
      </div>
    </div>
  );
}

function sayBar({ data, describe }: LanesProps, bar: number): string {
  const lane = data.lanes[data.lane[bar]!];
  return `${describe(bar)}\n${lane ?? ""}`;
}
