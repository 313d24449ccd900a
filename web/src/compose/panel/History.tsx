import { useEffect, useRef, useState } from "react";
import { get } from "../../api/client";
import { moment } from "../../ui/format";
import { Empty } from "../../ui/parts";
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
  const [operations, setOperations] = useState<Applied[]>([]);
  const last = useRef(0);
  useEffect(() => {
    const abort = new AbortController();
    const after = last.current || Math.max(0, view.seq - SHOWN);
    get<Applied[]>(`/compositions/${encodeURIComponent(id)}/operations?after=${after}&limit=1000`, abort.signal)
      .then((found) => {
        last.current = found.at(-1)?.seq ?? last.current;
        setOperations((before) => [...before, ...found.filter((f) => !before.some((b) => b.seq === f.seq))]);
      })
      .catch(() => undefined);
    return () => abort.abort();
  }, [id, view.seq]);

  if (operations.length === 0) return <Empty>Nothing was changed yet.</Empty>;
  return (
    <ol className={styles.history} aria-label="History">
      {operations.toReversed().map((o) => (
        <li key={o.seq}>
          <Avatar user={o.user} title={o.user} />
          <div>
            <strong>{o.user}</strong> {operationWords(view.composition, o.changes, o.note)}
            <div className="soft">
              {o.seq} · {moment(o.time)}
            </div>
          </div>
        </li>
      ))}
    </ol>
  );
}
