import { useEffect, useRef } from "react";
import { listenTo } from "../api/eventStream";

/** However much happens, this many milliseconds are between two calls. */
const PAUSE = 700;

/** Calls something soon after events arrive, but not for each of them. Without an address it listens to nothing. */
export function useEvents(path: string | null, act: () => void) {
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => {
    if (path === null) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = listenTo(path, () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        latest.current();
      }, PAUSE);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [path]);
}
