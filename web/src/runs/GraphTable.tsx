import { useMemo, useState } from "react";
import { CHAIN_STATE_CODES } from "../api/types";
import { stateToken } from "../ui/colours";
import { capitalised, number } from "../ui/format";
import { classes } from "../ui/parts";
import { useRowsInSight } from "../ui/rowsInSight";
import { CHAIN_STATES } from "../ui/states";
import type { BoardView } from "./board";
import { standing, type GraphModel } from "./graphModel";
import { signOf } from "./graphWords";
import styles from "./board.module.css";

const ROW = 36;

/** The same as the picture, as a table. */
export function GraphTable({ model, view, steps, selected, part, onOpen }: {
  model: GraphModel;
  view: BoardView;
  steps: Int32Array;
  selected: number;
  /** Only steps with this in their name or service. */
  part: string;
  onOpen: (node: number) => void;
}) {
  const [failedFirst, setFailedFirst] = useState(false);
  const board = view.state;
  const nodes = useMemo(() => {
    const wanted = part.toLowerCase();
    const all = [...model.view.nodes.keys()].filter((i) => {
      const { name, service } = model.view.nodes[i]!;
      return name.toLowerCase().includes(wanted) || service.toLowerCase().includes(wanted);
    });
    const failed = CHAIN_STATE_CODES.indexOf("failed");
    const failures = (i: number) => (view.state && steps[i]! >= 0 ? view.state.countOf(steps[i]!, failed) : 0);
    return failedFirst ? all.sort((a, b) => failures(b) - failures(a)) : all;
  }, [model, view, steps, part, failedFirst]);
  const { element, first, last, onScroll } = useRowsInSight<HTMLDivElement>(nodes.length, ROW);

  return (
    <div ref={element} className={styles.table} onScroll={onScroll} tabIndex={0} role="region" aria-label="Steps as a table">
      <table aria-rowcount={nodes.length + 1}>
        <thead>
          <tr aria-rowindex={1}>
            <th scope="col">Step</th>
            <th scope="col">Service</th>
            <th scope="col">Over</th>
            {CHAIN_STATES.map((state) => (
              <th key={state} scope="col" className="number" aria-sort={state === "failed" && failedFirst ? "descending" : undefined}>
                {state === "failed" ? (
                  <button type="button" className={styles.sort} onClick={() => setFailedFirst(!failedFirst)}>
                    Failed <span aria-hidden="true">{failedFirst ? "▾" : "▿"}</span>
                  </button>
                ) : (
                  capitalised(state)
                )}
              </th>
            ))}
            <th scope="col" className="number">
              Chains
            </th>
          </tr>
        </thead>
        <tbody>
          {first > 0 && <tr aria-hidden="true" style={{ height: first * ROW }} />}
          {nodes.slice(first, last).map((i, n) => {
            const node = model.view.nodes[i]!;
            const step = steps[i]!;
            const is = standing(board, step);
            return (
              <tr key={i} aria-rowindex={first + n + 2} className={classes(styles.tableRow, i === selected && styles.chosenRow)}>
                <td>
                  <span className={styles.mark} style={is === "none" ? undefined : { color: `var(--${stateToken(is)})` }} aria-hidden="true">
                    {signOf(is)}
                  </span>{" "}
                  <button type="button" className={styles.link} onClick={() => onOpen(i)}>
                    {node.name}
                  </button>
                </td>
                <td>{node.service}</td>
                <td>{node.over}</td>
                {CHAIN_STATES.map((state) => {
                  const n = board && step >= 0 ? board.countOf(step, CHAIN_STATE_CODES.indexOf(state)) : 0;
                  return (
                    <td key={state} className={classes("number", state === "failed" && n > 0 && styles.failedWord)}>
                      {n > 0 ? number(n) : ""}
                    </td>
                  );
                })}
                <td className="number">{board && step >= 0 ? number(board.totalOf(step)) : 0}</td>
              </tr>
            );
          })}
          {last < nodes.length && <tr aria-hidden="true" style={{ height: (nodes.length - last) * ROW }} />}
        </tbody>
      </table>
    </div>
  );
}
