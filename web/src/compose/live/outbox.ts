import type { Change } from "../model/types";
import { Lost } from "./connection";
import { Refusal } from "./protocol";

/** An operation that was not acknowledged yet. */
export interface Pending {
  op: number;
  changes: Change[];
  note: string;
  seen: Record<string, number>;
  /** The locks it counts on. */
  units: string[];
}

interface Waiting extends Pending {
  resolve: (seq: number) => void;
  reject: (error: Error) => void;
}

/**
 * Operations on their way: one after the other, so that it is always known which were done. What was not answered is said
 * again with the same number when the connection is back.
 */
export class Outbox {
  private queue: Waiting[];
  private last = 0;
  private isOpen = false;
  /** The operation that an answer is awaited for. */
  private sending: Waiting | null = null;

  constructor(
    kept: Pending[],
    /** Hears why an operation from before a reload was refused; nobody else waits for it. */
    orphaned: (error: Error) => void,
    /** Says an operation to the server, and returns its number in the history. */
    private readonly ship: (pending: Pending) => Promise<number>,
    private readonly changed: () => void,
  ) {
    this.queue = kept.map((pending) => ({ ...pending, resolve: () => undefined, reject: orphaned }));
  }

  get length(): number {
    return this.queue.length;
  }

  get pending(): Pending[] {
    return this.queue.map(({ op, changes, note, seen, units }) => ({ op, changes, note, seen, units }));
  }

  add(operation: Omit<Pending, "op">): Promise<number> {
    this.last = Math.max(this.last, ...this.queue.map((q) => q.op)) + 1;
    const op = this.last;
    return new Promise((resolve, reject) => {
      this.queue.push({ op, ...operation, resolve, reject });
      this.changed();
      void this.send();
    });
  }

  /** The connection is gone, or what counts has to be found out first. */
  pause() {
    this.isOpen = false;
    this.sending = null;
  }

  /** The server has done everything up to an operation, whether its answers have come or not. */
  acknowledge(op: number, seq: number, renew: (pending: Pending) => void) {
    this.last = Math.max(this.last, op);
    const done = this.queue.filter((q) => q.op <= op);
    this.queue = this.queue.filter((q) => q.op > op);
    this.queue.forEach(renew);
    for (const { resolve } of done) resolve(seq);
  }

  resume() {
    this.isOpen = true;
    void this.send();
  }

  /** Everything so far was answered. */
  async settled() {
    while (this.queue.length > 0) {
      const last = this.queue.at(-1)!;
      await new Promise<void>((over) => {
        const { resolve, reject } = last;
        last.resolve = (seq) => (resolve(seq), over());
        last.reject = (error) => (reject(error), over());
      });
    }
  }

  private async send() {
    const [next] = this.queue;
    if (!next || this.sending || !this.isOpen) return;
    this.sending = next;
    let answer: () => void;
    try {
      const seq = await this.ship(next);
      answer = () => next.resolve(seq);
    } catch (error) {
      if (error instanceof Lost) return;
      const wasDone = error instanceof Refusal && error.refused.code === "replayed";
      answer = () => (wasDone ? next.resolve(0) : next.reject(error as Error));
    }
    // If there was another connection meanwhile, it may be acknowledged already and the next one on its way.
    this.queue = this.queue.filter((q) => q !== next);
    if (this.sending === next) this.sending = null;
    answer();
    this.changed();
    void this.send();
  }
}
