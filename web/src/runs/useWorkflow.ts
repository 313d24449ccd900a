import { useEffect, useState } from "react";
import { ask, asProblem, type Problem } from "../api/client";

/** The text of the workflow of a run. */
export function useWorkflow(run: number | null) {
  const [heard, setHeard] = useState<{ run: number; text?: string; problem?: Problem } | null>(null);
  useEffect(() => {
    if (run === null) return;
    const abort = new AbortController();
    ask(`/runs/${run}/workflow`, { signal: abort.signal })
      .then((response) => response.text())
      .then((text) => abort.signal.aborted || setHeard({ run, text }))
      .catch((error) => abort.signal.aborted || setHeard({ run, problem: asProblem(error) }));
    return () => abort.abort();
  }, [run]);
  // The text of another run is none of this one.
  const own = heard?.run === run ? heard : null;
  return { text: own?.text, problem: own?.problem };
}
