import type { ReactNode } from "react";
import { capitalised, number } from "../ui/format";
import { classes } from "../ui/parts";
import type { Totals, Use } from "./load";
import { Warn } from "./Warn";
import styles from "./fleet.module.css";

/** The cluster at a glance. */
export function Headline({ totals }: { totals: Totals }) {
  return (
    <dl className={styles.headline}>
      <Figure name="Agents" note={totals.silent > 0 ? `${totals.silent} silent` : undefined} warn={totals.silent > 0}>
        {number(totals.agents)}
      </Figure>
      {totals.uses.map((use) => (
        <UseFigure key={use.name} use={use} />
      ))}
      <Figure name="Chains running" note={`${number(totals.held)} held in advance`}>
        {number(totals.running)}
      </Figure>
      <Figure name="Chains waiting" note={totals.waiting > 0 ? "see why below" : "nothing waits"}>
        {number(totals.waiting)}
      </Figure>
      <Figure name="Machines being created" note={totals.failed > 0 ? `${number(totals.failed)} failed` : undefined} warn={totals.failed > 0}>
        {number(totals.creating)}
      </Figure>
    </dl>
  );
}

function UseFigure({ use }: { use: Use }) {
  const part = use.of ? use.used / use.of : null;
  const note = use.of === null || part === null ? "no limit" : `of ${use.say(use.of)} · ${Math.round(part * 100)} %`;
  return (
    <Figure name={`${capitalised(use.name)} busy`} note={note} bar={part}>
      {use.say(use.used)}
    </Figure>
  );
}

function Figure({ name, note, warn = false, bar = null, children }: { name: string; note?: string; warn?: boolean; bar?: number | null; children: ReactNode }) {
  return (
    <div className={styles.figure}>
      <dt>{name}</dt>
      <dd className={styles.value}>{children}</dd>
      {note && <dd className={styles.figureNote}>{warn ? <Warn>{note}</Warn> : note}</dd>}
      {bar !== null && (
        <dd className={styles.bar} aria-hidden="true">
          <div className={classes(styles.fill, bar > 0.98 && styles.full)} style={{ width: `${Math.min(1, bar) * 100}%` }} />
        </dd>
      )}
    </div>
  );
}
