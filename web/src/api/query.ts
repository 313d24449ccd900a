import { useCallback, useEffect, useRef, useState } from "react";
import { asProblem, get, type Problem } from "./client";

export interface Query<T> {
  /** What was last heard; kept while it is asked for again. */
  data: T | undefined;
  /** Why the last question was not answered. */
  problem: Problem | undefined;
  /** Asks again now. */
  again: () => void;
}

/** An answer, and what was asked for: an answer to another question is none. */
interface Heard<T> {
  path: string | null;
  data?: T | undefined;
  problem?: Problem | undefined;
}

/**
 * Asks for something, and again every so many milliseconds while the page is looked at. A `null` path asks for nothing.
 */
export function useQuery<T>(path: string | null, every?: number): Query<T> {
  const [heard, setHeard] = useState<Heard<T>>({ path });
  const trigger = useRef<() => void>(() => undefined);

  useEffect(() => {
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
        const data = await get<T>(path!, abort.signal);
        if (abort.signal.aborted) return;
        setHeard({ path, data });
      } catch (error) {
        if (abort.signal.aborted) return;
        setHeard((before) => ({ path, data: before.path === path ? before.data : undefined, problem: asProblem(error) }));
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
  const isAnswer = heard.path === path;
  return { data: isAnswer ? heard.data : undefined, problem: isAnswer ? heard.problem : undefined, again };
}
