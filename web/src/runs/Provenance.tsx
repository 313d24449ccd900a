import { useMemo, useState } from "react";
import { useQuery } from "../api/query";
import type { Provenance as Told } from "../api/types";
import { count, duration, moment, number } from "../ui/format";
import { Button, Empty, Note, ProblemNote } from "../ui/parts";
import { save } from "../ui/save";
import { Code } from "./Code";
import { originTree, type Origin, type OriginNode } from "./originTree";
import styles from "./runs.module.css";

/** Deeper levels are opened by hand, so that a long history costs nothing until it is looked at. */
const OPEN_LEVELS = 2;
/** So many tasks are shown below another at first. */
const AT_FIRST = 25;

/** Where what is at an address comes from, or one file of it: the tasks that led to it, with a way to keep that. */
export function Provenance({ of, file, name }: { of: string; file?: string; name: string }) {
  const { data, problem } = useQuery<Told>(`${of}/provenance`);
  const tree = useMemo(() => (data ? originTree(data.tasks, file) : []), [data, file]);
  if (!data) return problem ? <ProblemNote problem={problem} /> : <Empty>Loading …</Empty>;
  if (data.tasks.length === 0) return <Empty>Nothing has led to this yet.</Empty>;
  return (
    <div className={styles.stackTight}>
      <div className={styles.actions}>
        <span className="soft">What it was made from, the last task first</span>
        <span className={styles.spring} />
        <Button onClick={() => save([JSON.stringify(data, null, 2)], `provenance-${name}.json`)}>Download as JSON</Button>
      </div>
      {data.truncated && <Note kind="warn">There is more behind this than is shown.</Note>}
      <Level nodes={tree} depth={0} />
    </div>
  );
}

function Level({ nodes, depth }: { nodes: OriginNode[]; depth: number }) {
  const [shown, setShown] = useState(AT_FIRST);
  return (
    <ul className={styles.origins} aria-label={depth === 0 ? "Provenance" : undefined}>
      {nodes.slice(0, shown).map((node, i) => (
        <Node key={i} node={node} depth={depth} />
      ))}
      {nodes.length > shown && (
        <li>
          <Button onClick={() => setShown(shown * 4)}>Show more of {nodes.length}</Button>
        </li>
      )}
    </ul>
  );
}

function Node({ node, depth }: { node: OriginNode; depth: number }) {
  const [isOpen, setIsOpen] = useState(depth < OPEN_LEVELS);
  const { task, below, isRepeated } = node;
  return (
    <li>
      <details className={styles.origin}>
        <summary>
          <code>{task.task}</code> <span className="soft">{summaryOf(task)}</span>
          {isRepeated && <span className="soft"> (its history is told above)</span>}
        </summary>
        <Code label={`Command of ${task.task}`}>{task.command}</Code>
        <Paths title="Read" paths={task.inputs} />
        <Paths title="Wrote" paths={task.outputs} />
      </details>
      {below.length > 0 &&
        (isOpen ? (
          <Level nodes={below} depth={depth + 1} />
        ) : (
          <div className={styles.origins}>
            <Button look="quiet" onClick={() => setIsOpen(true)}>
              made from {count(below.length, "task")} …
            </Button>
          </div>
        ))}
    </li>
  );
}

function summaryOf(task: Origin): string {
  const words = [
    `chain ${task.chain}`,
    task.agent && `on ${task.agent}`,
    task.started !== null && moment(task.started),
    task.millis !== null && duration(task.millis),
    task.cached && "from the cache",
  ];
  return words.filter(Boolean).join(", ");
}

function Paths({ title, paths }: { title: string; paths: string[] }) {
  if (paths.length === 0) return null;
  return (
    <div className={styles.paths}>
      <span className="soft">{title}</span>
      {paths.slice(0, AT_FIRST).map((path, i) => (
        <code key={i}>{path}</code>
      ))}
      {paths.length > AT_FIRST && <span className="soft">and {number(paths.length - AT_FIRST)} more</span>}
    </div>
  );
}
