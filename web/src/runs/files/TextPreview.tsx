import { useEffect, useMemo, useState } from "react";
import { Button } from "../../ui/parts";
import { attempt } from "../../ui/toasts";
import { prettyJson } from "./jsonText";
import { readPart, type Part } from "./part";
import styles from "./files.module.css";

/** So much is added each time somebody asks for more. */
const MORE = 256 << 10;
/** More than this is not shown. */
const MOST = 4 << 20;
/** Larger JSON is shown as it is. */
const LARGEST_JSON = 1 << 20;

/** A text, of which more can be had; JSON is laid out if it is small enough. */
export function TextPreview({ path, name, part, json = false }: { path: string; name: string; part: Part; json?: boolean }) {
  const [parts, setParts] = useState([part.bytes]);
  const [busy, setBusy] = useState(false);
  const have = parts.reduce((sum, p) => sum + p.length, 0);
  const isWhole = have >= (part.total ?? 0);
  const text = useMemo(() => decoded(parts), [parts]);
  const pretty = useMemo(() => (json && isWhole ? prettyJson(text) : null), [json, isWhole, text]);

  async function more(length: number) {
    setBusy(true);
    const next = await attempt(() => readPart(path, have, length));
    if (next && next.bytes.length > 0) setParts((p) => [...p, next.bytes]);
    setBusy(false);
  }

  const wantsAll = json && !isWhole && part.total !== null && part.total <= LARGEST_JSON;
  useEffect(() => {
    if (wantsAll) void more(part.total! - have);
  }, [wantsAll]);

  return (
    <>
      <pre className={styles.text} tabIndex={0} role="region" aria-label={`Contents of ${name}`}>
        {pretty ?? text}
      </pre>
      {!isWhole && have < MOST && (
        <Button onClick={() => void more(MORE)} disabled={busy}>
          More
        </Button>
      )}
    </>
  );
}

function decoded(parts: Uint8Array<ArrayBuffer>[]): string {
  const decoder = new TextDecoder();
  return parts.map((part) => decoder.decode(part, { stream: true })).join("");
}
