import { useEffect, useRef } from "react";
import { events } from "../api/client";
import type { RunEvent } from "../api/types";

/** However much happens, this many milliseconds are between two calls. */
const PAUSE = 700;
/** How long to wait before a connection that broke is made again. */
const AGAIN = 5000;

/** Calls something soon after events arrive, but not for each of them. Without an address it listens to nothing. */
export function useEvents(path: string | null, act: () => void) {
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => {
    if (path === null) return;
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;

    const soon = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        latest.current();
      }, PAUSE);
    };

    async function listen() {
      while (!abort.signal.aborted) {
        try {
          for await (const event of events<RunEvent>(path!, abort.signal)) {
            soon();
            if (event.event === "ended" && path !== "/events") return;
          }
        } catch {
          // It is tried again; meanwhile the page asks by itself.
        }
        await new Promise((done) => setTimeout(done, AGAIN));
      }
    }

    void listen();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [path]);
}
