import { useDeferredValue, useEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { Button, Empty, ProblemNote } from "../../ui/parts";
import { bytes, number } from "../../ui/format";
import { attempt } from "../../ui/toasts";
import { download } from "../files/download";
import { findIn, MOST_HITS, type Hit } from "./find";
import { LogLines } from "./LogLines";
import type { LogText } from "./logText";
import { useLog } from "./useLog";
import styles from "./logs.module.css";

export interface LogViewProps {
  /** The address of the log, with a query. */
  path: string;
  /** What the log is, in a few words. */
  label: string;
  /** The name of a file to which it is downloaded. */
  file: string;
  /** Whether its task may still write. */
  live: boolean;
}

/** A log that can be searched and followed. */
export function LogView({ path, label, file, live }: LogViewProps) {
  const { text, version, problem, isFollowed, isLoading, loadEarlier } = useLog(path, live);
  const [stick, setStick] = useState(true);
  const [query, setQuery] = useState("");
  // A search of a long log takes a moment; typing does not wait for it.
  const wanted = useDeferredValue(query);
  const { hits, chosen, choose } = useHits(text, version, wanted);
  const current = hits[chosen] ?? null;

  function step(by: number) {
    if (hits.length === 0) return;
    setStick(false);
    choose((chosen + by + hits.length) % hits.length);
  }

  function searchKey(event: KeyboardEvent) {
    if (event.key === "Enter") {
      event.preventDefault();
      step(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape" && query) {
      event.stopPropagation();
      setQuery("");
    }
  }

  return (
    <div className={styles.log}>
      <div className={styles.bar} role="group" aria-label="Log tools">
        <input
          type="search"
          className={styles.search}
          aria-label="Search in the log"
          placeholder="Search in the log"
          value={query}
          onChange={(e) => (setQuery(e.target.value), e.target.value && setStick(false))}
          onKeyDown={searchKey}
        />
        <Button onClick={() => step(-1)} disabled={hits.length === 0} aria-label="Previous match">
          ↑
        </Button>
        <Button onClick={() => step(1)} disabled={hits.length === 0} aria-label="Next match">
          ↓
        </Button>
        <span className="soft" role="status">
          {wanted && matches(hits.length, chosen)}
        </span>
        <span className={styles.spring} />
        {live && (
          <span className={styles.live}>
            <span className={isFollowed ? styles.pulse : styles.still} aria-hidden="true" />
            {isFollowed ? "live" : "connecting …"}
          </span>
        )}
        {!stick && (
          <Button onClick={() => setStick(true)}>{live ? "Follow" : "To the end"}</Button>
        )}
        <Button onClick={() => void attempt(() => download(path, file))}>Download</Button>
      </div>
      <ProblemNote problem={problem} />
      {text && text.start > 0 && (
        <div className={styles.earlier}>
          <span className="soft">{bytes(text.start)} before this are not shown.</span>
          {loadEarlier && (
            <Button onClick={() => void loadEarlier()}>Load earlier</Button>
          )}
        </div>
      )}
      {isLoading && <Empty>Loading …</Empty>}
      {text && text.lines.length === 0 && <Empty>{live ? "Nothing was written yet." : "Nothing was written."}</Empty>}
      {text && text.lines.length > 0 && (
        <LogLines
          text={text}
          version={version}
          label={label}
          query={wanted}
          current={wanted ? current : null}
          stick={stick}
          onStick={setStick}
        />
      )}
    </div>
  );
}

function matches(count: number, chosen: number): string {
  if (count === 0) return "no match";
  return `${chosen + 1} of ${count >= MOST_HITS ? `more than ${number(MOST_HITS)}` : number(count)}`;
}

/** What was found, and which of it is looked at. Only lines that are new are searched again. */
function useHits(text: LogText | null, version: number, query: string) {
  const [chosen, choose] = useState(0);
  const kept = useRef<{ text: LogText | null; query: string; shift: number; from: number; hits: Hit[] }>(null);
  const hits = useMemo(() => {
    if (!text || !query) return [];
    let known = kept.current;
    if (known?.text !== text || known.query !== query || known.shift !== text.shift) {
      known = { text, query, shift: text.shift, from: 0, hits: [] };
    }
    const fresh = known.hits.slice();
    findIn(text, query, known.from, text.settled, fresh);
    kept.current = { ...known, from: text.settled, hits: fresh };
    const all = fresh.slice();
    findIn(text, query, text.settled, text.lines.length, all);
    return all;
  }, [text, version, query]);
  useEffect(() => choose(0), [query]);
  return { hits, chosen: Math.min(chosen, Math.max(0, hits.length - 1)), choose };
}
