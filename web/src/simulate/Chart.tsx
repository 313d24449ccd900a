import { useLayoutEffect, useRef, useState, type CSSProperties, type RefObject } from "react";
import { count, number } from "../ui/format";
import { classes } from "../ui/parts";
import { MAKESPAN, shortly, type Grid, type Measure } from "./measures";
import { Mark } from "./ResultTable";
import { scaleFor, type Scale } from "./scale";
import type { Series } from "./series";
import styles from "./simulate.module.css";

const HEIGHT = 320;
const MARGIN = { top: 14, right: 18, bottom: 40, left: 76 };

interface ChartProps {
  grid: Grid;
  measure: Measure;
  series: Series[];
  /** The policy that is pointed out; the others fade. */
  pointed: string | null;
  onPoint: (policy: string | null) => void;
}

/** A measure against the number of nodes. The table says the same to those who cannot see it. */
export function Chart({ grid, measure, series, pointed, onPoint }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const lines = series.map((one) => ({ one, points: pointsOf(grid, measure, one.policy) })).filter((line) => line.points.length > 0);
  const bound = measure === MAKESPAN ? grid.nodes.flatMap((n) => pointOf(n, grid.lowerBound(n))) : [];
  const values = [...lines.flatMap((line) => line.points), ...bound].map(([, value]) => value);
  if (measure.id === "utilisation") values.push(0, 100);

  const right = width - MARGIN.right;
  const bottom = HEIGHT - MARGIN.bottom;
  const x = scaleFor(grid.nodes, "log", grid.nodes, MARGIN.left, right, 34);
  const y = scaleFor(values, measure.scale, measure.ticks, bottom, MARGIN.top, 26);
  const path = (points: [number, number][]) => points.map(([n, v], i) => `${i ? "L" : "M"}${x.at(n).toFixed(1)},${y.at(v).toFixed(1)}`).join("");

  return (
    <div ref={box} className={styles.chart}>
      {width > 0 && values.length > 0 && (
        <svg width={width} height={HEIGHT} role="img" aria-label={`${measure.name} against the number of nodes; the table above has the values`}>
          <Axes x={x} y={y} measure={measure} right={right} bottom={bottom} />
          {bound.length > 0 && <path d={path(bound)} className={styles.bound} />}
          {lines.map(({ one, points }) => (
            <g
              key={one.policy}
              className={classes(styles.series, pointed !== null && pointed !== one.policy && styles.faded)}
              style={{ "--colour": one.colour } as CSSProperties}
            >
              <path d={path(points)} className={styles.lineOf} />
              {points.map(([n, value]) => (
                <path key={n} d={one.mark} transform={`translate(${x.at(n)},${y.at(value)})`} className={styles.point}>
                  <title>{`${one.policy}, ${count(n, "node")}: ${measure.say(value)}`}</title>
                </path>
              ))}
            </g>
          ))}
        </svg>
      )}
      <ul className={styles.legend} aria-label="Legend">
        {lines.map(({ one }) => (
          <li key={one.policy} onMouseEnter={() => onPoint(one.policy)} onMouseLeave={() => onPoint(null)}>
            <Mark series={one} /> {one.policy}
          </li>
        ))}
        {bound.length > 0 && (
          <li>
            <svg width="22" height="10" aria-hidden="true">
              <path d="M0,5H22" className={styles.bound} />
            </svg>{" "}
            lower bound
          </li>
        )}
      </ul>
    </div>
  );
}

function Axes({ x, y, measure, right, bottom }: { x: Scale; y: Scale; measure: Measure; right: number; bottom: number }) {
  return (
    <g className={styles.axes}>
      {y.ticks.map((value) => (
        <g key={value} transform={`translate(0,${y.at(value)})`}>
          <line x1={MARGIN.left} x2={right} />
          <text x={MARGIN.left - 8} dy="0.32em" textAnchor="end">
            {shortly(measure, value)}
          </text>
        </g>
      ))}
      {x.ticks.map((nodes) => (
        <g key={nodes} transform={`translate(${x.at(nodes)},0)`}>
          <line y1={MARGIN.top} y2={bottom} />
          <text y={bottom + 16} textAnchor="middle">
            {number(nodes)}
          </text>
        </g>
      ))}
      <text x={(MARGIN.left + right) / 2} y={HEIGHT - 6} textAnchor="middle">
        nodes
      </text>
    </g>
  );
}

function pointOf(nodes: number, value: number | undefined): [number, number][] {
  return value === undefined ? [] : [[nodes, value]];
}

function pointsOf(grid: Grid, measure: Measure, policy: string): [number, number][] {
  return grid.nodes.flatMap((n) => {
    const figure = grid.at(policy, n);
    return pointOf(n, figure && measure.of(figure));
  });
}

function useWidth(box: RefObject<HTMLDivElement | null>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    setWidth(element.clientWidth);
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, [box]);
  return width;
}
