import { useState } from "react";
import type { ChainView, TaskFiles } from "../../api/types";
import { Button, Empty } from "../../ui/parts";
import { FileItem } from "./FileItem";
import styles from "./files.module.css";

/** So many values of an argument are listed at first. */
const AT_FIRST = 20;

type Argument = TaskFiles["arguments"][number];

/** What the tasks of a chain read and write. */
export function ChainFiles({ run, chain }: { run: number; chain: ChainView }) {
  if (chain.files.every((t) => t.arguments.length === 0)) return <Empty>This chain reads and writes nothing.</Empty>;
  return (
    <>
      {chain.files.map((task, t) => (
        <section key={t} className={styles.task} aria-label={`Files of ${task.task}`}>
          <h3>
            <code>{task.task}</code>
          </h3>
          {(["input", "output"] as const).map((direction) =>
            task.arguments.map(
              (argument, a) =>
                argument.direction === direction && (
                  <ArgumentFiles key={a} argument={argument} path={`/runs/${run}/chains/${chain.chain}/files/${t}/${a}`} />
                ),
            ),
          )}
        </section>
      ))}
    </>
  );
}

function ArgumentFiles({ argument, path }: { argument: Argument; path: string }) {
  const [shown, setShown] = useState(AT_FIRST);
  const { values } = argument;
  return (
    <div className={styles.argument}>
      <div>
        {argument.direction} <strong>{argument.id}</strong> <span className="soft">{argument.dataType}</span>
      </div>
      <div className={styles.values}>
        {values.slice(0, shown).map((value, n) =>
          argument.files ? <FileItem key={n} path={`${path}/${n}`} name={value} /> : <code key={n}>{value}</code>,
        )}
      </div>
      {values.length > shown && (
        <div>
          <Button onClick={() => setShown(shown + 10 * AT_FIRST)}>Show more of {values.length}</Button>
        </div>
      )}
    </div>
  );
}
