import { events, Problem } from "./client";
import type { RunEvent } from "./types";

/** How long to wait before a connection that broke is made again. */
const AGAIN = 2000;

/**
 * The events at an address, for everybody on the page who wants to know of them. They share one connection, and a page that nobody
 * looks at has none: browsers allow few connections to one server, and those of all tabs count.
 */
class EventStream {
  private readonly listeners = new Set<() => void>();
  private abort: AbortController | null = null;

  constructor(private readonly path: string) {}

  add(listener: () => void) {
    this.listeners.add(listener);
    if (this.listeners.size > 1) return;
    document.addEventListener("visibilitychange", this.seen);
    this.look();
  }

  /** Returns whether anybody is left. */
  remove(listener: () => void): boolean {
    this.listeners.delete(listener);
    if (this.listeners.size > 0) return true;
    document.removeEventListener("visibilitychange", this.seen);
    this.abort?.abort();
    return false;
  }

  private readonly seen = () => {
    this.look();
    if (!document.hidden) this.tell();
  };

  private look() {
    this.abort?.abort();
    this.abort = document.hidden ? null : new AbortController();
    if (this.abort) void this.listen(this.abort.signal);
  }

  private async listen(signal: AbortSignal) {
    while (!signal.aborted) {
      try {
        for await (const _ of events<RunEvent>(this.path, signal)) this.tell();
      } catch (error) {
        // What the server refuses now it will refuse again. Whoever listens also asks by itself from time to time.
        if (error instanceof Problem && error.status >= 400 && error.status < 500) return;
      }
      if (signal.aborted) return;
      // Something may have happened that nobody was told of.
      this.tell();
      await new Promise((done) => setTimeout(done, AGAIN));
    }
  }

  private tell() {
    for (const listener of this.listeners) listener();
  }
}

const streams = new Map<string, EventStream>();

/** Calls something whenever an event arrives from an address. Returns how to stop. */
export function listenTo(path: string, heard: () => void): () => void {
  const stream = streams.get(path) ?? new EventStream(path);
  streams.set(path, stream);
  // Each call counts by itself, also if it is for the same function.
  const listener = () => heard();
  stream.add(listener);
  return () => {
    if (!stream.remove(listener) && streams.get(path) === stream) streams.delete(path);
  };
}
