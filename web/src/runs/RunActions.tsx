import { useState, type FormEvent } from "react";
import { send } from "../api/client";
import type { StatusView } from "../api/types";
import { go } from "../app/router";
import { may, useMe } from "../app/session";
import { Button, Dialog, LinkButton } from "../ui/parts";
import { attempt, tell } from "../ui/toasts";
import { isOver } from "../ui/states";
import styles from "./runs.module.css";

type Question = "cancel" | "delete" | "priority";

/** What can be done with a run as it stands, by who looks at it. */
export function RunActions({ run, onChange }: { run: StatusView; onChange: () => void }) {
  const me = useMe();
  const [question, setQuestion] = useState<Question | null>(null);
  const [busy, setBusy] = useState(false);
  const over = isOver(run.state);
  const edits = may(me, "editor");

  async function act(method: string, part: string, done: string, body?: unknown) {
    setBusy(true);
    setQuestion(null);
    await attempt(async () => {
      await send(method, `/runs/${run.run}${part}`, body);
      tell(done);
      if (method === "DELETE") go("/runs");
      else onChange();
    });
    setBusy(false);
  }

  return (
    <div className={styles.actions} role="group" aria-label="What to do with the run">
      {edits && !over && !run.held && (
        <Button disabled={busy} onClick={() => void act("POST", "/pause", "The run waits. What runs already goes on.")}>
          Pause
        </Button>
      )}
      {edits && !over && run.held && (
        <Button disabled={busy} look="primary" onClick={() => void act("POST", "/resume", "The run goes on.")}>
          Resume
        </Button>
      )}
      {edits && canRetry(run) && (
        <Button disabled={busy} look="primary" onClick={() => void act("POST", "/retry", "What failed runs again.")}>
          Retry
        </Button>
      )}
      {edits && !over && (
        <Button disabled={busy} onClick={() => setQuestion("priority")}>
          Priority …
        </Button>
      )}
      {edits && <LinkButton to={`/submit?again=${run.run}`}>Edit and run again</LinkButton>}
      {over && <LinkButton to={`/simulate?run=${run.run}`}>Simulate</LinkButton>}
      {edits && !over && (
        <Button disabled={busy} look="danger" onClick={() => setQuestion("cancel")}>
          Cancel …
        </Button>
      )}
      {may(me, "operator") && over && (
        <Button disabled={busy} look="danger" onClick={() => setQuestion("delete")}>
          Delete …
        </Button>
      )}
      {question === "cancel" && (
        <Confirm
          title="Cancel this run?"
          text="What runs is stopped, and nothing more is started. What is done stays; a retry goes on from there."
          yes="Cancel the run"
          no="Let it go on"
          onYes={() => void act("POST", "/cancel", "The run is being cancelled.")}
          onNo={() => setQuestion(null)}
        />
      )}
      {question === "delete" && (
        <Confirm
          title="Delete this run?"
          text="The run disappears with its logs and the files it has made, except results that were put elsewhere. This cannot be undone."
          yes="Delete the run"
          no="Keep it"
          onYes={() => void act("DELETE", "", "The run is deleted.")}
          onNo={() => setQuestion(null)}
        />
      )}
      {question === "priority" && (
        <PriorityDialog
          priority={run.priority}
          onSet={(priority) => void act("PUT", "/priority", `The priority is ${priority} now.`, { priority })}
          onClose={() => setQuestion(null)}
        />
      )}
    </div>
  );
}

/** Whether there is something to do again. */
export function canRetry(run: StatusView): boolean {
  return isOver(run.state) && run.state !== "succeeded";
}

interface ConfirmProps {
  title: string;
  text: string;
  yes: string;
  no: string;
  onYes: () => void;
  onNo: () => void;
}

function Confirm({ title, text, yes, no, onYes, onNo }: ConfirmProps) {
  const buttons = (
    <>
      <Button onClick={onNo}>{no}</Button>
      <Button look="danger" onClick={onYes}>
        {yes}
      </Button>
    </>
  );
  return (
    <Dialog title={title} onClose={onNo} buttons={buttons}>
      <p className={styles.dialogText}>{text}</p>
    </Dialog>
  );
}

function PriorityDialog({ priority, onSet, onClose }: { priority: number; onSet: (priority: number) => void; onClose: () => void }) {
  const [typed, setTyped] = useState(String(priority));
  const number = Number(typed);
  const isGood = typed.trim() !== "" && Number.isInteger(number) && Math.abs(number) < 2 ** 31;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (isGood) onSet(number);
  };
  return (
    <Dialog title="Priority" onClose={onClose}>
      <form onSubmit={submit} className={styles.dialogForm}>
        <p className={styles.dialogText}>Chains of runs with a higher priority come first. Waiting counts as well, so nothing waits for ever.</p>
        <label>
          Priority <input type="number" step={1} value={typed} onChange={(e) => setTyped(e.target.value)} />
        </label>
        <div className={styles.dialogButtons}>
          <Button onClick={onClose}>Leave it</Button>
          <Button type="submit" look="primary" disabled={!isGood}>
            Set
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
