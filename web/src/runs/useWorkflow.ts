import { useEffect, useState } from "react";
import { ask, Problem } from "../api/client";

/** The text of the workflow of a run. */
export function useWorkflow(run: number | null) {
  const [text, setText] = useState<string>();
  const [problem, setProblem] = useState<Problem>();
  useEffect(() => {
    if (run === null) return;
    const abort = new AbortController();
    ask(`/runs/${run}/workflow`, { signal: abort.signal })
      .then((response) => response.text())
      .then(setText)
      .catch((error) => abort.signal.aborted || setProblem(error instanceof Problem ? error : new Problem(0, String(error))));
    return () => abort.abort();
  }, [run]);
  return { text, problem };
}
