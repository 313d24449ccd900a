import { useState } from "react";
import { ask, Problem } from "../api/client";
import type { Mistake } from "../api/types";
import { go } from "../app/router";
import { may, useMe } from "../app/session";
import { FileButton } from "../ui/FileButton";
import { count, wholeNumber } from "../ui/format";
import { Button, Empty, LinkButton, Note, Page, ProblemNote } from "../ui/parts";
import { complain, tell } from "../ui/toasts";
import YamlEditor from "../ui/YamlEditor";
import { EXAMPLE } from "./example";
import { mistakesOf, placeWords } from "./mistakes";
import { useCheck } from "./useCheck";
import { useWorkflow } from "./useWorkflow";
import styles from "./runs.module.css";

/** Larger files are no workflows for an editor. */
const LARGEST = 8 << 20;

/** Submits a workflow: a new one, or that of another run after changes. */
export default function SubmitPage({ again }: { again: string | null }) {
  const run = wholeNumber(again);
  const { text, problem } = useWorkflow(run);
  const me = useMe();
  const title = run === null ? "Submit a workflow" : `Edit run ${run} and run it again`;
  if (!may(me, "editor")) return <Page title={title}><Note kind="warn">Submitting needs the role editor.</Note></Page>;
  if (problem) return <Page title={title}><ProblemNote problem={problem} /></Page>;
  if (run !== null && text === undefined) return <Page title={title}><Empty>Loading …</Empty></Page>;
  return <Form key={again} title={title} again={run} first={run === null ? EXAMPLE : text!} />;
}

function Form({ title, again, first }: { title: string; again: number | null; first: string }) {
  const [text, setText] = useState(first);
  const [name, setName] = useState("");
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<Mistake[]>([]);
  const [place, setPlace] = useState<{ line: number; column?: number }>();
  const check = useCheck(text);
  const mistakes = check.mistakes.length > 0 ? check.mistakes : refused;

  async function submit() {
    setBusy(true);
    setRefused([]);
    try {
      const answer = await sent(again, text, name.trim());
      tell(`Run ${answer.run} is submitted.`);
      go(`/runs/${answer.run}`);
    } catch (error) {
      if (error instanceof Problem && error.status === 422) setRefused(mistakesOf(error));
      else complain(error);
    }
    setBusy(false);
  }

  return (
    <Page
      title={title}
      actions={
        <>
          <Upload onText={(t) => (setText(t), setRefused([]))} />
          {again !== null && <LinkButton to={`/runs/${again}`}>Back to run {again}</LinkButton>}
          <Button look="primary" disabled={busy || !text.trim()} onClick={() => void submit()}>
            {again === null ? "Submit" : "Run again"}
          </Button>
        </>
      }
    >
      {again === null ? (
        <div className={styles.field}>
          <label htmlFor="run-name">Name</label>
          <input
            id="run-name"
            aria-describedby="run-name-help"
            placeholder="optional"
            value={name}
            onChange={(e) => setName(e.target.value)}
            maxLength={200}
          />
          <span id="run-name-help" className="soft">
            What the workflow says if there is none.
          </span>
        </div>
      ) : (
        <p className="soft">A new run begins. What it has in common with run {again} is taken from the cache.</p>
      )}
      <div className={styles.submitEditor}>
        <YamlEditor value={text} onChange={(t) => (setText(t), setRefused([]))} mistakes={mistakes.filter(isHere)} label="Workflow" place={place} />
      </div>
      <p className="soft" role="status">
        {mistakes.length > 0
          ? `${count(mistakes.length, "mistake")} found.`
          : check.verdict === "good"
            ? "This workflow can be run."
            : "Checked while you type. Escape, then Tab leaves the editor."}
      </p>
      {mistakes.length > 0 && <Mistakes mistakes={mistakes} onGo={(m) => setPlace({ line: m.line!, column: m.column })} />}
    </Page>
  );
}

/** Sends a workflow: as an edition of another run's, with a name, or as it is. */
async function sent(again: number | null, text: string, name: string): Promise<{ run: number }> {
  if (again !== null) return (await ask(`/runs/${again}/again`, { method: "POST", body: text })).json();
  if (!name) return (await ask("/runs", { method: "POST", body: text })).json();
  const body = JSON.stringify({ name, files: [["workflow.yaml", text]] });
  const headers = { "Content-Type": "application/vnd.catena+json" };
  return (await ask("/runs", { method: "POST", body, headers })).json();
}

/** Whether a mistake is in the text itself, not in a file that it refers to. */
function isHere({ file, line }: Mistake): boolean {
  return line !== undefined && (file === undefined || !file.includes("/"));
}

function Mistakes({ mistakes, onGo }: { mistakes: Mistake[]; onGo: (mistake: Mistake) => void }) {
  return (
    <ul className={styles.mistakes} aria-label="Mistakes">
      {mistakes.map((mistake, i) => (
        <li key={i} className={mistake.severity === "warning" ? styles.mistakeWarning : undefined}>
          <div>
            <strong>{mistake.severity}</strong>: {mistake.message}
          </div>
          {mistake.help && <div className="soft">{mistake.help}</div>}
          {isHere(mistake) ? (
            <button type="button" className={styles.linkLike} onClick={() => onGo(mistake)}>
              {placeWords(mistake)}
            </button>
          ) : (
            <span className="soft">{[mistake.file, placeWords(mistake)].filter(Boolean).join(", ")}</span>
          )}
        </li>
      ))}
    </ul>
  );
}

function Upload({ onText }: { onText: (text: string) => void }) {
  async function read(file: File) {
    if (file.size > LARGEST) throw new Error(`${file.name} is too large to be edited here; use catena submit.`);
    onText(await file.text());
  }
  return (
    <FileButton label="Workflow file" accept=".yaml,.yml,.json" onFile={read}>
      Open a file …
    </FileButton>
  );
}
