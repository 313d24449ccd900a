import { useCallback, useSyncExternalStore } from "react";
import { ask, asProblem, type Problem } from "../api/client";
import { listenTo } from "../api/eventStream";
import type { Board } from "../api/types";
import { BoardState } from "./boardState";

/** Not more often than this is anything asked for, so nothing is drawn more often because of it. */
const SOONEST = 250;
/** In case events do not arrive. */
const SAFETY = 2000;
/** A run that is over may be tried again. */
const OVER = 15_000;
/** Boards that nobody looks at are kept for those who come back, but only so many. */
const KEPT = 1;

/** What is known at a moment. Another object each time something has changed; the state in it is the same one. */
export interface BoardView {
  /** `null` until something is known. */
  state: BoardState | null;
  problem: Problem | undefined;
  /** The time on the server, in milliseconds after the origin of the board. */
  now: () => number;
}

/** The board of a run, kept current while somebody looks at it. */
export class BoardStore {
  private view: BoardView = { state: null, problem: undefined, now: () => this.now() };
  private readonly listeners = new Set<() => void>();
  private abort: AbortController | null = null;
  private stopListening: (() => void) | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private busy = false;
  private wanted = false;
  private asked = -Infinity;
  /** How far the clock of the server is ahead. */
  private ahead = 0;

  constructor(private readonly run: number) {}

  readonly snapshot = () => this.view;

  get isWatched(): boolean {
    return this.listeners.size > 0;
  }

  readonly subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    if (this.listeners.size === 1) this.start();
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size === 0) this.stop();
    };
  };

  /** Asks soon, but not too soon after the last time. */
  want() {
    if (!this.abort) return;
    if (this.busy) {
      this.wanted = true;
      return;
    }
    this.schedule(Math.max(0, this.asked + SOONEST - performance.now()));
  }

  private schedule(millis: number) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.look(), millis);
  }

  private start() {
    this.abort = new AbortController();
    this.busy = false;
    this.want();
    this.listen();
  }

  private stop() {
    this.abort?.abort();
    this.abort = null;
    this.listen();
    clearTimeout(this.timer);
  }

  private async look() {
    const signal = this.abort?.signal;
    if (!signal || this.busy) return;
    this.busy = true;
    this.wanted = false;
    this.asked = performance.now();
    let problem: Problem | undefined;
    try {
      await this.load(signal);
    } catch (error) {
      if (!signal.aborted) problem = asProblem(error);
    }
    if (signal.aborted) return;
    this.busy = false;
    if (problem || this.view.problem) this.change({ ...this.view, problem });
    if (this.wanted) this.want();
    else this.schedule((this.view.state?.over ? OVER : SAFETY) * (document.hidden ? 10 : 1));
  }

  private async load(signal: AbortSignal) {
    const known = this.view.state;
    const query = known ? `?after=${known.version}&epoch=${encodeURIComponent(known.epoch)}` : "";
    const news = await this.fetch(query, signal);
    // What is added twice is wrong, and whoever looks now asks for it again.
    if (signal.aborted) return;
    if (known && news.epoch === known.epoch) {
      if (known.take(news)) this.change({ ...this.view, problem: undefined });
      this.listen();
      return;
    }
    // A board of another epoch has nothing to do with what is known, and it came whole.
    const state = new BoardState(news.epoch, news.origin);
    state.take(news);
    this.change({ ...this.view, state, problem: undefined });
    this.listen();
  }

  private async fetch(query: string, signal: AbortSignal): Promise<Board> {
    const response = await ask(`/runs/${this.run}/board${query}`, { signal });
    const date = Date.parse(response.headers.get("date") ?? "");
    const ahead = date - Date.now();
    // The header only has seconds. Less than that is no reason to distrust the clock here.
    if (Number.isFinite(ahead)) this.ahead = Math.abs(ahead) > SAFETY ? ahead : 0;
    return (await response.json()) as Board;
  }

  private now(): number {
    return Date.now() + this.ahead - (this.view.state?.origin ?? 0);
  }

  /** Every event is a reason to ask again, as long as somebody looks at the run and it goes on. */
  private listen() {
    const isWanted = this.abort !== null && !this.view.state?.over;
    if (isWanted) this.stopListening ??= listenTo(`/runs/${this.run}/events`, () => this.want());
    else {
      this.stopListening?.();
      this.stopListening = null;
    }
  }

  private change(view: BoardView) {
    this.view = view;
    this.listeners.forEach((listener) => listener());
  }
}

const stores = new Map<number, BoardStore>();

function storeOf(run: number): BoardStore {
  let store = stores.get(run);
  if (!store) {
    store = new BoardStore(run);
    stores.set(run, store);
    const unwatched = [...stores].filter(([, one]) => one !== store && !one.isWatched);
    for (const [old] of unwatched.slice(0, -KEPT)) stores.delete(old);
  }
  return store;
}

/** All chains of a run, as they stand. Whoever uses this is rendered again at most four times a second. */
export function useBoard(run: number): BoardView {
  const subscribe = useCallback((listener: () => void) => storeOf(run).subscribe(listener), [run]);
  return useSyncExternalStore(subscribe, () => storeOf(run).snapshot());
}

/** Something was done to a run, such as trying it again: its board is looked at now. */
export function refreshBoard(run: number) {
  stores.get(run)?.want();
}
