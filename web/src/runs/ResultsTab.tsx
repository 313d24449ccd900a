import { useState } from "react";
import type { StatusView } from "../api/types";
import { count } from "../ui/format";
import { Button, Card, Empty } from "../ui/parts";
import { fileName } from "./files/download";
import { FileItem } from "./files/FileItem";
import { Provenance } from "./Provenance";
import { isOver } from "../ui/states";
import styles from "./runs.module.css";

/** So many results show their first file at once. */
const OPEN = 6;
/** So many files of a result are listed at first. */
const AT_FIRST = 20;

/** What came of a run. */
export function ResultsTab({ run }: { run: StatusView }) {
  const results = run.results ?? [];
  if (results.length === 0) {
    return <Empty>{isOver(run.state) ? "This run has no named results." : "Results are here when the run has ended."}</Empty>;
  }
  return (
    <div className={styles.stack}>
      {results.map(([name, values], i) => (
        <Result key={name} run={run.run} name={name} values={values} isOpen={i < OPEN} />
      ))}
    </div>
  );
}

function Result({ run, name, values, isOpen }: { run: number; name: string; values: string[]; isOpen: boolean }) {
  const [shown, setShown] = useState(AT_FIRST);
  return (
    <Card title={name} actions={<span className="soft">{count(values.length, "value")}</span>}>
      <div className={styles.stackTight}>
        {values.slice(0, shown).map((value, n) => (
          <Value key={n} run={run} name={name} number={n} value={value} isOpen={isOpen && n === 0} />
        ))}
        {values.length === 0 && <span className="soft">nothing</span>}
        {values.length > shown && (
          <div>
            <Button onClick={() => setShown(shown + 10 * AT_FIRST)}>Show more of {values.length}</Button>
          </div>
        )}
      </div>
    </Card>
  );
}

function Value({ run, name, number, value, isOpen }: { run: number; name: string; number: number; value: string; isOpen: boolean }) {
  const [asked, setAsked] = useState(false);
  const path = `/runs/${run}/results/${encodeURIComponent(name)}/${number}`;
  // What is no path is a value that says everything itself.
  if (!value.includes("/")) return <code>{value}</code>;
  return (
    <div>
      <FileItem path={path} name={value} isOpen={isOpen} />
      <button type="button" className={styles.linkLike} aria-expanded={asked} onClick={() => setAsked(!asked)}>
        Where {fileName(value)} comes from
      </button>
      {asked && <Provenance of={path} file={value} name={`${run}-${name}`} />}
    </div>
  );
}
