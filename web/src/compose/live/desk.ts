import { contentOf } from "../model/place";
import { repair } from "../model/edit";
import type { Change } from "../model/types";
import { Lost } from "./connection";
import { Refusal, type Refused } from "./protocol";
import type { Room } from "./room";

/** A part of the composition that this window edits, or wants to. */
export interface Part {
  /**
   * `free`: not ours. `asking`: for the lock. `mine`: locked. `refused`: others have it. `waiting`: in line for it.
   * `saving`: on its way. `conflict`: others have changed it. `lost`: there is text, but no lock.
   */
  status: "free" | "asking" | "mine" | "refused" | "waiting" | "saving" | "conflict" | "lost";
  /** What it should become, in the form of the change that makes it so. */
  draft: Change | null;
  /** The version the draft was made on. */
  seen: number;
  refused: Refused | null;
  hasFocus: boolean;
  path: string[];
  edited: number;
}

const FREE: Part = { status: "free", draft: null, seen: 0, refused: null, hasFocus: false, path: [], edited: 0 };

/** Drafts outlive a reload of the page. */
export interface Drawer {
  load(): Record<string, { draft: Change; seen: number }>;
  keep(drafts: Record<string, { draft: Change; seen: number }>): void;
}

/** What this window is about to change: who has typed what where, from the lock to the answer. Nothing typed is ever lost. */
export class Desk {
  parts: Record<string, Part> = {};
  private readonly listeners = new Set<() => void>();
  /** What was clicked before the lock was granted. */
  private readonly next = new Map<string, Change>();
  private readonly stop: () => void;
  private wasLive = false;

  constructor(
    private readonly room: Room,
    private readonly drawer: Drawer,
    private readonly now: () => number,
  ) {
    for (const [unit, { draft, seen }] of Object.entries(drawer.load())) {
      this.parts[unit] = { ...FREE, status: "lost", draft, seen };
    }
    this.stop = room.subscribe(() => this.look());
  }

  close() {
    this.stop();
  }

  subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  };

  part(unit: string): Part {
    return this.parts[unit] ?? FREE;
  }

  /** Whether something was typed here a moment ago. */
  isBusy(unit: string): boolean {
    const { draft, edited } = this.part(unit);
    return draft !== null && this.now() - edited < 60_000;
  }

  get unsaved(): number {
    return Object.values(this.parts).filter((p) => p.draft !== null).length;
  }

  /** The user has come to a part, and wants to change it. */
  enter(unit: string, path: string[]) {
    this.set(unit, { hasFocus: true, path });
    const { status } = this.part(unit);
    // Where there is no connection, this is done when it is back.
    if (status === "free" && this.room.view?.line === "live") void this.lock(unit, false);
  }

  /** The user has gone elsewhere: what was typed is saved, and the part is let go. */
  leave(unit: string) {
    if (!Object.hasOwn(this.parts, unit)) return;
    this.set(unit, { hasFocus: false });
    const { status, draft, refused } = this.part(unit);
    if (status === "mine" && draft && !refused) void this.save(unit);
    else if (status === "mine" && !draft) this.free(unit);
    else if ((status === "refused" || status === "free") && !draft) this.free(unit);
  }

  edit(unit: string, draft: Change, path: string[]) {
    const { status } = this.part(unit);
    if (status === "free") this.enter(unit, path);
    if (status === "free" || status === "asking") {
      this.next.set(unit, draft);
      return;
    }
    if (status !== "mine" && status !== "lost") return;
    this.write(unit, draft);
  }

  private write(unit: string, draft: Change) {
    const part = this.part(unit);
    const { composition, versions } = this.room.view!;
    const isSame = JSON.stringify(contentOf(composition, unit)) === JSON.stringify(draft);
    const seen = part.draft ? part.seen : (versions[unit] ?? 0);
    this.set(unit, { draft: isSame && part.status === "mine" ? null : draft, seen, refused: null, edited: this.now() });
  }

  async save(unit: string): Promise<void> {
    const { draft, seen, status } = this.part(unit);
    const view = this.room.view;
    if (!draft || !view || status === "saving") return;
    this.set(unit, { status: "saving", refused: null });
    try {
      await this.room.do(repair(view.composition, [draft]), { units: [unit], seen: { [unit]: seen } });
      this.set(unit, { draft: null });
      if (this.part(unit).hasFocus && this.holds(unit)) this.set(unit, { status: "mine" });
      else this.free(unit);
    } catch (error) {
      const refused = error instanceof Refusal ? error.refused : ({ code: "malformed", message: String(error) } as const);
      const status = refused.code === "stale" ? "conflict" : this.holds(unit) ? "mine" : "lost";
      this.set(unit, { status, refused });
    }
  }

  /** Forgets what was typed. */
  discard(unit: string) {
    this.free(unit);
  }

  /** What was typed shall count although others have changed the same. */
  async insist(unit: string) {
    const theirs = this.part(unit).refused?.theirs?.find((t) => t.unit === unit);
    const seen = theirs?.version ?? this.room.view?.versions[unit] ?? 0;
    this.set(unit, { seen, status: this.holds(unit) ? "mine" : "lost", refused: null });
    await this.save(unit);
  }

  /** Asks for the lock, in line behind those who have it. */
  async lock(unit: string, wait: boolean): Promise<void> {
    const { path, draft } = this.part(unit);
    this.set(unit, { status: wait ? "waiting" : "asking", refused: null });
    try {
      await this.room.lock(unit, path, wait);
      const part = this.part(unit);
      const next = this.next.get(unit);
      this.next.delete(unit);
      if (!part.hasFocus && !wait && !draft && !next) return this.free(unit);
      const isOver = this.isOverwritten(unit);
      this.set(unit, isOver ? { status: "conflict", refused: isOver } : { status: "mine" });
      if (next) this.write(unit, next);
      if (next && !part.hasFocus) await this.save(unit);
    } catch (error) {
      this.next.delete(unit);
      if (error instanceof Refusal) this.set(unit, { status: draft ? "lost" : "refused", refused: error.refused });
      else this.set(unit, { status: draft ? "lost" : "free" });
      if (error instanceof Lost || this.part(unit).hasFocus || draft) return;
      this.free(unit);
    }
  }

  /** Does not wait for it any more. */
  cancel(unit: string) {
    this.room.cancel();
    const { draft } = this.part(unit);
    if (draft) this.set(unit, { status: "lost" });
    else this.free(unit);
  }

  /** Others may have changed a part between the draft and the lock. */
  private isOverwritten(unit: string): Refused | null {
    const { draft, seen } = this.part(unit);
    const version = this.room.view?.versions[unit] ?? 0;
    if (!draft || version === seen) return null;
    return { code: "stale", message: "Somebody has changed this since you typed yours.", theirs: [{ unit, version, by: "", content: null }] };
  }

  private holds(unit: string): boolean {
    return Object.hasOwn(this.room.view?.held ?? {}, unit);
  }

  private free(unit: string) {
    this.next.delete(unit);
    this.room.release(unit);
    const { [unit]: _, ...rest } = this.parts;
    this.change(rest);
  }

  /** A lock may have gone. What was typed stays. */
  private look() {
    const view = this.room.view;
    for (const [unit, part] of Object.entries(this.parts)) {
      const isThere = part.status === "lost" && view && JSON.stringify(contentOf(view.composition, unit)) === JSON.stringify(part.draft);
      // What was sent before the page was loaded again may have arrived.
      if (isThere) this.free(unit);
      if (part.status !== "mine" || this.holds(unit)) continue;
      if (part.draft) this.set(unit, { status: "lost" });
      else this.set(unit, { status: "free" });
    }
    const isLive = view?.line === "live";
    const cameBack = isLive && !this.wasLive;
    this.wasLive = isLive;
    if (!cameBack) return;
    for (const [unit, part] of Object.entries(this.parts)) {
      if (part.hasFocus && part.status === "free") void this.lock(unit, false);
    }
  }

  private set(unit: string, changed: Partial<Part>) {
    this.change({ ...this.parts, [unit]: { ...this.part(unit), ...changed } });
  }

  private change(parts: Record<string, Part>) {
    this.parts = parts;
    const drafts = Object.entries(parts).flatMap(([unit, p]) => (p.draft ? [[unit, { draft: p.draft, seen: p.seen }] as const] : []));
    this.drawer.keep(Object.fromEntries(drafts));
    for (const listener of this.listeners) listener();
  }
}
