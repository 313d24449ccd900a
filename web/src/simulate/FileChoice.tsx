import type { ChangeEvent } from "react";
import { bytes } from "../ui/format";
import { complain } from "../ui/toasts";
import { guessName } from "./choices";
import { Field } from "./Field";
import type { ChoiceProps } from "./WorkflowChoice";
import styles from "./simulate.module.css";

/** Texts up to this length can be edited; longer ones would make the page slow. */
const EDITABLE = 100_000;

/** One's own workflow, from a file or pasted. */
export function FileChoice({ choices, change }: ChoiceProps) {
  async function read(event: ChangeEvent<HTMLInputElement>) {
    const file = event.target.files?.[0];
    if (!file) return;
    try {
      change({ file: file.name, text: await file.text() });
    } catch (error) {
      complain(error);
    }
  }
  const name = choices.file || (choices.text.trim() ? guessName(choices.text) : "");
  return (
    <>
      <Field name="File">
        <input type="file" accept=".xml,.dax,.json,.yml,.yaml" onChange={(e) => void read(e)} />
      </Field>
      {choices.text.length > EDITABLE ? (
        <p className={styles.hint}>
          {choices.file}, {bytes(choices.text.length)}
        </p>
      ) : (
        <Field name="Or its text">
          <textarea
            rows={6}
            spellCheck={false}
            value={choices.text}
            placeholder="Paste DAX, WfFormat, Pegasus or a workflow of Catena."
            onChange={(e) => change({ text: e.target.value })}
          />
        </Field>
      )}
      <div className={styles.fields}>
        <Field name="Name, whose ending says what it is">
          <input value={choices.file} placeholder={name || "workflow.xml"} onChange={(e) => change({ file: e.target.value })} />
        </Field>
        <Field name="Seconds per task, if unknown">
          <input type="number" min={0} step="any" value={choices.runtime} onChange={(e) => change({ runtime: e.target.value })} />
        </Field>
      </div>
      <p className={styles.hint}>
        <code>.xml</code> and <code>.dax</code> are DAX, <code>.json</code> is WfFormat, <code>.yaml</code> Pegasus or Catena. DAGMan files name
        others: make one of them with <code>catena convert --to dax</code>.
      </p>
    </>
  );
}
