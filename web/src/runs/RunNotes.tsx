import type { StatusView, WaitingView } from "../api/types";
import { Link } from "../app/router";
import { count } from "../ui/format";
import { Note } from "../ui/parts";
import { Words } from "../ui/Words";
import { plainText } from "./logs/ansi";
import { isOver } from "../ui/states";
import styles from "./runs.module.css";

/** More reasons than these are not shown. */
const REASONS = 4;

/** What somebody who looks at a run should know before anything else. */
export function RunNotes({ run, tab }: { run: StatusView; tab: string }) {
  return (
    <>
      <FailureNote run={run} tab={tab} />
      {run.held && !isOver(run.state) && <Note kind="warn">This run waits because somebody has paused it.</Note>}
      {!isOver(run.state) && run.waiting.length > 0 && <WaitingNote waiting={run.waiting} />}
    </>
  );
}

function FailureNote({ run, tab }: { run: StatusView; tab: string }) {
  const failed = run.chains.failed;
  const hasFailed = run.state === "failed" || run.state === "partially-succeeded";
  if (failed === 0 && !hasFailed) return null;
  const first = run.failures[0]?.failure;
  return (
    <section className={styles.failed} aria-label="What went wrong">
      <strong>{failed > 0 ? `${count(failed, "chain")} failed` : "The run failed"}</strong>
      {first && (
        <div>
          <code>{first.task}</code>: {first.message}
          {first.tail.length > 0 && <pre className={styles.failedTail}>{plainText(first.tail.at(-1)!)}</pre>}
        </div>
      )}
      {!first && run.error && <div>{run.error}</div>}
      {run.failures.length > 0 && tab !== "failures" && <Link to={`/runs/${run.run}/failures`}>Show what failed, and why</Link>}
    </section>
  );
}

function WaitingNote({ waiting }: { waiting: WaitingView[] }) {
  return (
    <Note quiet>
      <ul className={styles.plainList}>
        {waiting.slice(0, REASONS).map((w, i) => (
          <li key={i}>
            {count(w.count, "chain waits", "chains wait")}
            {w.capabilities.length > 0 && ` for {${w.capabilities.join(", ")}}`}: <Words text={w.reason} />
          </li>
        ))}
      </ul>
      {waiting.length > REASONS && <span className="soft">and {count(waiting.length - REASONS, "other reason")}</span>}
    </Note>
  );
}
