import { useMemo } from "react";
import type { CriticalPath } from "../api/types";
import { duration } from "../ui/format";
import { classes, Dot } from "../ui/parts";
import { useRowsInSight } from "../ui/rowsInSight";
import { coloursOf, percent, shares } from "./criticalPathWords";
import boardStyles from "./board.module.css";
import styles from "./criticalPath.module.css";

const ROW = 36;

/** The chains of the path, first to last. Only those in sight are made. */
export function CriticalPathRows({ path, chosen, onOpen }: { path: CriticalPath; chosen: number | null; onOpen: (chain: number) => void }) {
  const { links, total } = path;
  const { element, first, last, onScroll } = useRowsInSight<HTMLDivElement>(links.length, ROW);
  const colourOf = useMemo(() => coloursOf(shares(path)), [path]);
  const longest = links.reduce((most, link) => Math.max(most, link.waited + link.ended - link.started), 1);
  return (
    <div ref={element} className={classes(boardStyles.table, styles.rows)} onScroll={onScroll} tabIndex={0} role="region" aria-label="Chains of the critical path">
      <table aria-rowcount={links.length + 1}>
        <thead>
          <tr aria-rowindex={1}>
            <th scope="col">Step</th>
            <th scope="col">Task</th>
            <th scope="col">Agent</th>
            <th scope="col" className="number">
              Waited
            </th>
            <th scope="col" className="number">
              Ran
            </th>
            <th scope="col" className="number">
              Share
            </th>
            <th scope="col" aria-label="Waited and ran, as a bar" className={styles.pictureColumn} />
          </tr>
        </thead>
        <tbody>
          {first > 0 && <tr aria-hidden="true" style={{ height: first * ROW }} />}
          {links.slice(first, last).map((link, n) => {
            const ran = link.ended - link.started;
            const name = link.steps.join(" → ") || `chain ${link.chain}`;
            return (
              <tr key={first + n} aria-rowindex={first + n + 2} className={classes(boardStyles.tableRow, styles.row, link.chain === chosen && boardStyles.chosenRow)}>
                <td>
                  <Dot colour={colourOf(link.steps[0] ?? name)} />{" "}
                  <button type="button" className={boardStyles.link} title={`Open chain ${link.chain}`} onClick={() => onOpen(link.chain)}>
                    {name}
                  </button>
                </td>
                <td className={styles.task} title={link.tasks.join(", ")}>
                  {link.tasks.join(", ")}
                </td>
                <td>{link.agent}</td>
                <td className="number">{duration(link.waited)}</td>
                <td className="number">{duration(ran)}</td>
                <td className="number">{percent(link.waited + ran, total)}</td>
                <td aria-hidden="true">
                  <div className={styles.mini}>
                    <div className={styles.waiting} style={{ width: `${(100 * link.waited) / longest}%` }} />
                    <div style={{ width: `${(100 * ran) / longest}%`, background: colourOf(link.steps[0] ?? name) }} />
                  </div>
                </td>
              </tr>
            );
          })}
          {last < links.length && <tr aria-hidden="true" style={{ height: (links.length - last) * ROW }} />}
        </tbody>
      </table>
    </div>
  );
}
