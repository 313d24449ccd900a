import { useEffect, useRef, useState } from "react";
import { asProblem, get, type Problem } from "../../api/client";
import { moment, shortName } from "../../ui/format";
import { Empty, ProblemNote } from "../../ui/parts";
import type { Applied } from "../live/protocol";
import { operationWords } from "../model/words";
import { Avatar } from "../marks";
import { useStudio } from "../studio";
import styles from "../compose.module.css";

/** So many operations are shown at first. */
const SHOWN = 200;

/** What was done, by whom, newest first. */
export function History() {
  const { id, view } = useStudio();
  const [operations, setOperations] = useState<Applied[]>();
  const [problem, setProblem] = useState<Problem>();
  const last = useRef(0);
  useEffect(() => {
    const abort = new AbortController();
    const after = last.current || Math.max(0, view.seq - SHOWN);
    get<Applied[]>(`/compositions/${encodeURIComponent(id)}/operations?after=${after}&limit=1000`, abort.signal)
      .then((found) => {
        if (abort.signal.aborted) return;
        last.current = found.at(-1)?.seq ?? last.current;
        setOperations((before = []) => [...before, ...found.filter((f) => !before.some((b) => b.seq === f.seq))]);
        setProblem(undefined);
      })
      .catch((error) => abort.signal.aborted || setProblem(asProblem(error)));
    return () => abort.abort();
  }, [id, view.seq]);

  if (!operations) return problem ? <ProblemNote problem={problem} /> : <Empty>Loading …</Empty>;
  if (operations.length === 0) return <Empty>Nothing was changed yet.</Empty>;
  return (
    <>
      <ProblemNote problem={problem} />
      <ol className={styles.history} aria-label="History">
        {operations.toReversed().map((o) => (
          <li key={o.seq}>
            <Avatar user={o.user} title={shortName(o.user)} />
            <div>
              <strong>{shortName(o.user)}</strong> {operationWords(view.composition, o.changes, o.note)}
              <div className="soft">
                {o.seq} · {moment(o.time)}
              </div>
            </div>
          </li>
        ))}
      </ol>
    </>
  );
}
