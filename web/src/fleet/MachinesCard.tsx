import { useState } from "react";
import type { FleetView } from "../api/types";
import { ago, count, lasting, moment, number } from "../ui/format";
import { Button, Card, classes, Empty, TableBox } from "../ui/parts";
import { Words } from "../ui/Words";
import styles from "./fleet.module.css";

type Machine = FleetView["machines"][number];

/** What deserves attention comes first. */
const ORDER: Machine["state"][] = ["creating", "failed", "destroying", "running", "destroyed"];
const MARKS: Record<Machine["state"], string> = { creating: "◌", running: "●", destroying: "◍", destroyed: "○", failed: "✗" };
const COLOURS: Record<Machine["state"], string> = {
  creating: "var(--state-paused)",
  running: "var(--state-running)",
  destroying: "var(--soft)",
  destroyed: "var(--soft)",
  failed: "var(--state-failed)",
};
const SHOWN = 12;

/** Machines that are being made, have failed, are there, or were there lately. */
export function MachinesCard({ machines, now }: { machines: Machine[]; now: number }) {
  const [all, setAll] = useState(false);
  const sorted = [...machines].sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state) || b.changed - a.changed);
  const shown = all ? sorted : sorted.slice(0, SHOWN);
  return (
    <Card title={`Machines (${number(machines.length)})`} className={styles.tableCard}>
      {machines.length === 0 ? (
        <Empty>No machine was made on demand yet.</Empty>
      ) : (
        <TableBox label="Table of machines">
          <table>
            <thead>
              <tr>
                <th scope="col">Machine</th>
                <th scope="col">Setup</th>
                <th scope="col">State</th>
                <th scope="col">Since</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((machine) => (
                <Row key={machine.id} machine={machine} now={now} />
              ))}
            </tbody>
          </table>
        </TableBox>
      )}
      {sorted.length > SHOWN && (
        <p>
          <Button onClick={() => setAll(!all)}>{all ? "Show fewer" : `Show ${count(sorted.length - SHOWN, "more machine")}`}</Button>
        </p>
      )}
    </Card>
  );
}

function Row({ machine, now }: { machine: Machine; now: number }) {
  const since = machine.state === "creating" ? `for ${lasting(now - machine.created)}` : ago(machine.changed, now);
  return (
    <tr>
      <th scope="row" className={styles.name}>
        <span className={styles.shortId}>{machine.id}</span>
      </th>
      <td>{machine.setup}</td>
      <td>
        <span className={styles.state}>
          <span aria-hidden="true" style={{ color: COLOURS[machine.state] }}>
            {MARKS[machine.state]}
          </span>{" "}
          {machine.state === "creating" ? "being created" : machine.state === "destroying" ? "being taken down" : machine.state}
        </span>
        {machine.reason && (
          <div className={classes(styles.reason, machine.state === "failed" ? styles.bad : "soft")}>
            <Words text={machine.reason} />
          </div>
        )}
      </td>
      <td className={styles.seen} title={`asked for ${moment(machine.created)}, changed ${moment(machine.changed)}`}>
        {since}
      </td>
    </tr>
  );
}
