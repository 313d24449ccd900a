import { useState } from "react";
import { send } from "../api/client";
import { useQuery } from "../api/query";
import type { ChainView, FailureView, StatusView } from "../api/types";
import { Link } from "../app/router";
import { may, useMe } from "../app/session";
import { count } from "../ui/format";
import { Button, Card, Empty, LinkButton, Note } from "../ui/parts";
import { attempt, tell } from "../ui/toasts";
import { Code } from "./Code";
import { grouped, logPlace, type FailureGroup } from "./failures";
import { plainText } from "./logs/ansi";
import { canRetry } from "./RunActions";
import styles from "./runs.module.css";

/** So many failures of a group are listed at first. */
const AT_FIRST = 10;

/** Every attempt that failed; those that say the same stand together. */
export function FailuresTab({ run, onChange }: { run: StatusView; onChange: () => void }) {
  if (run.failures.length === 0) return <Empty>{run.error ?? "Nothing has failed."}</Empty>;
  return (
    <div className={styles.stack}>
      <Remedies run={run} onChange={onChange} />
      {run.failures.length >= 100 && <Note>There are more failures than the hundred that are shown here.</Note>}
      {grouped(run.failures).map((group) => (
        <Group key={`${group.message}\n${group.help}`} run={run.run} group={group} />
      ))}
    </div>
  );
}

/** What can be done about it. */
function Remedies({ run, onChange }: { run: StatusView; onChange: () => void }) {
  const me = useMe();
  if (!may(me, "editor")) return null;
  async function retry() {
    await attempt(async () => {
      await send("POST", `/runs/${run.run}/retry`);
      tell("What failed runs again.");
      onChange();
    });
  }
  return (
    <div className={styles.actions} role="group" aria-label="What to do about it">
      <span className="soft">Mend the cause, then</span>
      {canRetry(run) && <Button onClick={() => void retry()}>Retry</Button>}
      <LinkButton to={`/submit?again=${run.run}`}>Edit and run again</LinkButton>
    </div>
  );
}

function Group({ run, group }: { run: number; group: FailureGroup }) {
  const [shown, setShown] = useState(AT_FIRST);
  const { failures } = group;
  const title = failures.length > 1 ? `${count(failures.length, "attempt")}: ${group.message}` : group.message;
  return (
    <Card title={title}>
      {group.help && <p className={styles.help}>{group.help}</p>}
      <div className={styles.stackTight}>
        {failures.slice(0, shown).map((failure, i) => (
          <Failure key={`${failure.chain}-${failure.attempt}`} run={run} failure={failure} isOpen={i === 0} />
        ))}
      </div>
      {failures.length > shown && (
        <p>
          <Button onClick={() => setShown(failures.length)}>Show all {failures.length}</Button>
        </p>
      )}
    </Card>
  );
}

function Failure({ run, failure, isOpen }: { run: number; failure: FailureView; isOpen: boolean }) {
  const [open, setOpen] = useState(isOpen);
  const { chain } = failure;
  const { task, command, tail } = failure.failure;
  return (
    <details className={styles.failure} open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>
        <code>{task}</code> <span className="soft">chain {chain}, attempt {failure.attempt}</span>
      </summary>
      {open && (
        <div className={styles.failureBody}>
          <Agent run={run} failure={failure} />
          <h3>Command</h3>
          <Code label={`Command of ${task}`}>{command}</Code>
          {tail.length > 0 && (
            <>
              <h3>Last lines</h3>
              <Code label={`Last lines of ${task}`}>{tail.map(plainText).join("\n")}</Code>
            </>
          )}
          <div className={styles.links}>
            <Link to={logPlace(run, failure)}>Log</Link>
            <Link to={`/runs/${run}/failures?chain=${chain}`}>Chain {chain}</Link>
          </div>
        </div>
      )}
    </details>
  );
}

/** Who executed it; a chain remembers that of each attempt. */
function Agent({ run, failure }: { run: number; failure: FailureView }) {
  const { data } = useQuery<ChainView>(`/runs/${run}/chains/${failure.chain}`);
  const mishap = data?.mishaps.find((m) => m.attempt === failure.attempt);
  const agent = mishap ? mishap.agent : data?.attempt === failure.attempt ? data.agent : null;
  if (!agent) return null;
  return (
    <p>
      <span className="soft">on agent</span> <code>{agent}</code>
    </p>
  );
}
