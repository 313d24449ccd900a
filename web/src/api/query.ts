import { useCallback, useEffect, useRef, useState } from "react";
import { get, Problem } from "./client";

export interface Query<T> {
  /** What was last heard; kept while it is asked for again. */
  data: T | undefined;
  /** Why the last question was not answered. */
  problem: Problem | undefined;
  /** Asks again now. */
  again: () => void;
}

/**
 * Asks for something, and again every so many milliseconds while the page is looked at. A `null` path asks for nothing.
 */
export function useQuery<T>(path: string | null, every?: number): Query<T> {
  const [data, setData] = useState<T>();
  const [problem, setProblem] = useState<Problem>();
  const trigger = useRef<() => void>(() => undefined);

  useEffect(() => {
    setData(undefined);
    setProblem(undefined);
    if (path === null) return;
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let busy = false;
    let wanted = false;

    async function look() {
      if (busy) {
        wanted = true;
        return;
      }
      busy = true;
      clearTimeout(timer);
      try {
        setData(await get<T>(path!, abort.signal));
        setProblem(undefined);
      } catch (error) {
        if (abort.signal.aborted) return;
        setProblem(error instanceof Problem ? error : new Problem(0, String(error)));
      }
      busy = false;
      if (wanted) {
        wanted = false;
        void look();
      } else if (every) {
        timer = setTimeout(() => void look(), document.hidden ? every * 10 : every);
      }
    }

    trigger.current = () => void look();
    const seen = () => {
      if (!document.hidden && every) void look();
    };
    document.addEventListener("visibilitychange", seen);
    void look();
    return () => {
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [path, every]);

  const again = useCallback(() => trigger.current(), []);
  return { data, problem, again };
}
