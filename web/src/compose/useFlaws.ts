import { useEffect, useState } from "react";
import { get } from "../api/client";
import { plain } from "./model/words";
import type { Flaw } from "./studio";

/** Who changes something often changes more. */
const PAUSE = 400;

/** What is missing, looked at again a moment after something has changed. */
export function useFlaws(id: string, seq: number): Flaw[] {
  const [flaws, setFlaws] = useState<Flaw[]>([]);
  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(() => {
      get<{ flaws: Flaw[] }>(`/compositions/${encodeURIComponent(id)}/check`, abort.signal)
        .then((found) => abort.signal.aborted || setFlaws(found.flaws.map((f) => ({ ...f, message: plain(f.message) }))))
        // That there is no connection is said elsewhere; what was missing before is the best guess.
        .catch(() => undefined);
    }, PAUSE);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [id, seq]);
  return flaws;
}
