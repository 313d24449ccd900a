import { lazy, Suspense, useEffect, useMemo, useState } from "react";
import { ask, asProblem, type Problem } from "../../api/client";
import type { Mistake } from "../../api/types";
import { Button, Empty, Note, ProblemNote } from "../../ui/parts";
import { tell } from "../../ui/toasts";
import { linesOf } from "../model/lines";
import { plain } from "../model/words";
import { useStudio } from "../studio";
import styles from "../compose.module.css";

const YamlEditor = lazy(() => import("../../ui/YamlEditor"));
const DEBOUNCE = 350;

/** The composition as a text, which follows what everybody does, and can be changed as a whole. */
export function Yaml() {
  const { id, view, trail, frozen } = useStudio();
  const [text, setText] = useState<string>();
  const [typed, setTyped] = useState<string | null>(null);
  const [base, setBase] = useState(0);
  const [problem, setProblem] = useState<Problem>();
  /** Why the text could not be read, as opposed to applied. */
  const [unread, setUnread] = useState<Problem>();
  const path = `/compositions/${encodeURIComponent(id)}`;

  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(
      () => {
        ask(`${path}?form=yaml`, { signal: abort.signal })
          .then((response) => response.text())
          .then((now) => {
            if (abort.signal.aborted) return;
            setText(now);
            setUnread(undefined);
          })
          .catch((error) => abort.signal.aborted || setUnread(asProblem(error)));
      },
      text === undefined ? 0 : DEBOUNCE,
    );
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
    // Only what others and the user do makes another text; having got one does not.
  }, [path, view.seq]);

  const workflow = trail.at(-1)!.workflow;
  const shown = typed ?? text ?? "";
  const lines = useMemo(() => linesOf(shown, workflow), [shown, workflow]);
  const mistakes = useMemo((): Mistake[] => {
    const told = /^(\d+):(\d+): ([\s\S]*)$/.exec(problem?.message ?? "");
    return told ? [{ severity: "error", code: "composition", line: Number(told[1]), column: Number(told[2]), message: plain(told[3]!) }] : [];
  }, [problem]);
  const isDirty = typed !== null && typed !== text;

  const change = (to: string) => {
    if (typed === null) setBase(view.seq);
    setTyped(to);
    setProblem(undefined);
  };
  const applyText = async () => {
    try {
      await ask(path, { method: "PUT", body: typed! });
      setTyped(null);
      setText(typed!);
      setProblem(undefined);
      tell("The text is the composition now.");
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  if (text === undefined) return unread ? <ProblemNote problem={unread} /> : <Empty>Loading …</Empty>;
  return (
    <section className={styles.yaml} aria-label="YAML">
      <div className={styles.yamlEditor}>
        <Suspense fallback={<Empty>Loading …</Empty>}>
          <YamlEditor value={shown} onChange={change} readOnly={frozen !== null} mistakes={mistakes} label="Composition as YAML" {...(lines ? { lines } : {})} />
        </Suspense>
      </div>
      {isDirty && view.seq !== base && <Note kind="warn">Others have changed something since you began to type. Applying your text takes that back.</Note>}
      {problem && (
        <Note kind="error">
          {mistakes[0] ? `Line ${mistakes[0].line}: ${mistakes[0].message}` : plain(problem.message)}
        </Note>
      )}
      <div className={styles.yamlButtons}>
        {isDirty ? (
          <>
            <Button look="primary" disabled={frozen !== null} onClick={() => void applyText()}>
              Apply
            </Button>
            <Button
              onClick={() => {
                setTyped(null);
                setProblem(undefined);
              }}
            >
              Discard
            </Button>
          </>
        ) : (
          <span className="soft">{frozen ?? "This follows what everybody does. Type to change it as a whole; a text must be complete to be applied."}</span>
        )}
      </div>
    </section>
  );
}
