import { useEffect, useRef, useState } from "react";
import { ask, asProblem, Problem } from "../../api/client";
import { readPart } from "../files/part";
import { LogText, MOST_LINES } from "./logText";

/** So much of a log is loaded at first; where it goes on is what people look for. */
const FIRST = 256 << 10;
/** So much is loaded each time somebody asks for earlier parts. */
const EARLIER = 1 << 20;
const UNREADABLE = "The log cannot be read any further.";
/** How often the page is told of new lines. */
const PAUSE = 100;
/** How long to wait before a connection that broke is made again. */
const AGAIN = 1000;

export interface Log {
  text: LogText | null;
  /** Another number when the text has changed. */
  version: number;
  problem: Problem | undefined;
  /** Whether what is written appears as it is written. */
  isFollowed: boolean;
  /** Whether the first part is on its way. */
  isLoading: boolean;
  /** Loads an earlier part, if there is one. */
  loadEarlier: (() => Promise<void>) | null;
}

/** The log at an address: its end at first, and what is added while its task is `live`. */
export function useLog(path: string, live: boolean): Log {
  const [text, setText] = useState<LogText | null>(null);
  const [version, setVersion] = useState(0);
  const [problem, setProblem] = useState<Problem>();
  const [isFollowed, setIsFollowed] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const busy = useRef(false);
  const [wasLive, setWasLive] = useState(live);
  if (live && !wasLive) setWasLive(true);

  function changed() {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      setVersion((v) => v + 1);
    }, PAUSE);
  }

  useEffect(() => {
    const abort = new AbortController();
    setText(null);
    setProblem(undefined);
    readPart(path, -FIRST, FIRST, abort.signal).then(
      (part) => {
        const made = new LogText(part.from);
        made.append(part.bytes);
        setText(made);
        setVersion((v) => v + 1);
      },
      (error) => abort.signal.aborted || setProblem(asProblem(error, UNREADABLE)),
    );
    return () => abort.abort();
  }, [path]);

  // Once it is followed, the server says when it is over; what was written just before the end is not missed then.
  const isLive = useRef(live);
  isLive.current = live;
  useEffect(() => {
    if (!text || !isLive.current) return;
    const abort = new AbortController();
    follow(path, text, { changed, connected: setIsFollowed, isLive: () => isLive.current }, abort.signal).catch(
      (error) => abort.signal.aborted || setProblem(asProblem(error, UNREADABLE)),
    );
    return () => abort.abort();
  }, [path, text, wasLive]);

  useEffect(() => () => clearTimeout(timer.current), []);

  async function loadEarlier() {
    if (!text || busy.current) return;
    busy.current = true;
    try {
      const from = Math.max(0, text.start - EARLIER);
      const part = await readPart(path, from, text.start - from);
      text.prepend(part.bytes);
      setVersion((v) => v + 1);
    } catch (error) {
      setProblem(asProblem(error, UNREADABLE));
    }
    busy.current = false;
  }

  const hasEarlier = text !== null && text.start > 0 && !text.hasDropped && text.lines.length < MOST_LINES;
  const isLoading = text === null && problem === undefined;
  return { text, version, problem, isFollowed, isLoading, loadEarlier: hasEarlier ? loadEarlier : null };
}

interface Follower {
  changed: () => void;
  connected: (yes: boolean) => void;
  /** Whether more may be written. */
  isLive: () => boolean;
}

/** Adds what is written, as it is written; connections that break are made again. */
async function follow(path: string, text: LogText, follower: Follower, signal: AbortSignal) {
  while (!signal.aborted) {
    try {
      await followOnce(path, text, follower, signal);
    } catch (error) {
      const refused = error instanceof Problem && error.status >= 400 && error.status < 500;
      if (signal.aborted || refused) throw error;
    } finally {
      follower.connected(false);
    }
    if (!follower.isLive()) return;
    await new Promise((done) => setTimeout(done, AGAIN));
  }
}

async function followOnce(path: string, text: LogText, follower: Follower, signal: AbortSignal) {
  const response = await ask(`${path}&follow=true&from=${text.end}`, { signal });
  const reader = response.body!.getReader();
  follower.connected(true);
  for (;;) {
    const { done, value } = await reader.read();
    if (done || signal.aborted) return;
    text.append(value);
    follower.changed();
  }
}
