import type { CSSProperties } from "react";
import type { Figure } from "../api/types";
import { number } from "../ui/format";
import { classes, TableBox } from "../ui/parts";
import { Words } from "../ui/Words";
import { isBest, MAKESPAN, ratio, type Grid, type Measure } from "./measures";
import type { Series } from "./series";
import styles from "./simulate.module.css";

interface TableProps {
  grid: Grid;
  measure: Measure;
  series: Series[];
  /** Why some policies have no results. */
  refused: Map<string, string>;
  isRunning: boolean;
  pointed: string | null;
  onPoint: (policy: string | null) => void;
}

/** Policies by numbers of nodes; the best of each is marked. */
export function ResultTable({ grid, measure, series, refused, isRunning, pointed, onPoint }: TableProps) {
  return (
    <TableBox label="Table of results">
      <table className={styles.table}>
        <caption className="visually-hidden">{measure.name} by policy and number of nodes</caption>
        <thead>
          <tr>
            <th scope="col">Nodes</th>
            {grid.nodes.map((n) => (
              <th key={n} scope="col" className="number">
                {number(n)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {series.map((one) => (
            <tr
              key={one.policy}
              className={classes(pointed === one.policy && styles.pointed)}
              onMouseEnter={() => onPoint(one.policy)}
              onMouseLeave={() => onPoint(null)}
            >
              <th scope="row">
                <Mark series={one} /> {one.policy}
              </th>
              {refused.has(one.policy) ? (
                <td colSpan={grid.nodes.length} className={styles.refused}>
                  <Words text={refused.get(one.policy) ?? ""} />
                </td>
              ) : (
                grid.nodes.map((n) => (
                  <td key={n} className="number">
                    <Cell figure={grid.at(one.policy, n)} measure={measure} best={grid.best(measure, n)} none={isRunning ? "…" : "–"} />
                  </td>
                ))
              )}
            </tr>
          ))}
        </tbody>
        {measure === MAKESPAN && (
          <tfoot>
            <tr>
              <th scope="row" title="The work divided by all processors, or the longest path: nobody can be faster.">
                lower bound
              </th>
              {grid.nodes.map((n) => {
                const bound = grid.lowerBound(n);
                return (
                  <td key={n} className={classes("number", "soft")}>
                    {bound === undefined ? "" : measure.say(bound)}
                  </td>
                );
              })}
            </tr>
          </tfoot>
        )}
      </table>
    </TableBox>
  );
}

function Cell({ figure, measure, best, none }: { figure: Figure | undefined; measure: Measure; best: number | undefined; none: string }) {
  if (!figure) return <span className="soft">{none}</span>;
  const value = measure.of(figure);
  const wins = isBest(value, best);
  const star = wins && (
    <span aria-hidden="true" className={styles.best}>
      ★{" "}
    </span>
  );
  // Makespans are long and have a second line, where there is room for the star.
  const isMakespan = measure === MAKESPAN;
  return (
    <>
      {!isMakespan && star}
      <span className={classes(wins && styles.best)}>
        {wins && <span className="visually-hidden">best: </span>}
        {measure.say(value)}
      </span>
      {isMakespan && (
        <span className={styles.ratio} title="Compared with the lower bound">
          {star}
          {ratio(figure).toFixed(2)}×
        </span>
      )}
    </>
  );
}

/** The mark of a policy, as in the chart. */
export function Mark({ series }: { series: Series }) {
  return (
    <svg className={styles.mark} viewBox="-6 -6 12 12" width="12" height="12" aria-hidden="true" style={{ "--colour": series.colour } as CSSProperties}>
      <path d={series.mark} />
    </svg>
  );
}
