import { useEffect, useState } from "react";
import { ask } from "../api/client";
import type { Checked, Mistake } from "../api/types";

/** Who types is waited for. */
const TYPING = 500;

export interface Check {
  /** What is known about the text. */
  verdict: "unknown" | "good" | "bad";
  mistakes: Mistake[];
}

const NOTHING: Check = { verdict: "unknown", mistakes: [] };

/** Has the server check a text whenever nobody has changed it for a moment. */
export function useCheck(text: string | undefined): Check {
  const [check, setCheck] = useState<Check>(NOTHING);
  useEffect(() => {
    if (!text?.trim()) {
      setCheck(NOTHING);
      return;
    }
    const abort = new AbortController();
    const timer = setTimeout(() => {
      ask("/check", { method: "POST", body: text, signal: abort.signal })
        .then((answer) => answer.json() as Promise<Checked>)
        .then(
          ({ valid, mistakes }) => setCheck({ verdict: valid ? "good" : "bad", mistakes: valid ? [] : mistakes }),
          // If it could not be checked, that is no mistake of the text.
          () => abort.signal.aborted || setCheck(NOTHING),
        );
    }, TYPING);
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [text]);
  return check;
}
