import { apply } from "../model/apply";
import { contentOf } from "../model/place";
import { touched } from "../model/touched";
import type { Change, Composition } from "../model/types";
import { Connection, Lost, type World } from "./connection";
import { Outbox, type Pending } from "./outbox";
import { Refusal, type Applied, type Ask, type Blocker, type Cursor, type LockView, type RoomEvent, type RoomRole, type State, type Version, type Why } from "./protocol";

export interface Lock extends LockView {
  /** Since when, by the clock of this window. */
  at: number;
}

/** Everything there is to see, except where others point. Replaced as a whole when it changes. */
export interface View {
  line: "live" | "reconnecting";
  session: number;
  role: RoomRole;
  composition: Composition;
  versions: Record<string, number>;
  seq: number;
  people: { session: number; user: string }[];
  locks: Lock[];
  /** What this window has locked, with the numbers of the locks. */
  held: Record<string, number>;
  named: Version[];
  published: Version | null;
  /** Changes that were not acknowledged yet. */
  pending: number;
  waiting: { unit: string; position: number; blockers: Blocker[] } | null;
}

export type Notice =
  | { kind: "asked"; unit: string; by: string; within: number }
  | { kind: "idle"; unit: string; within: number }
  | { kind: "lost"; unit: string; why: Why | "away" }
  | { kind: "refused"; message: string };

/** What survives a reload of the page. */
export interface Memory {
  session: number | null;
  pending: Pending[];
  keep(session: number | null, pending: Pending[]): void;
}

const POINT_EVERY = 50;

/** One composition as this window sees it, and everything the window can do with it. */
export class Room {
  view: View | null = null;
  /** Where others point; changes often, so it is apart. */
  cursors: ReadonlyMap<number, Cursor> = new Map();

  private readonly line: Connection;
  private readonly listeners = new Set<() => void>();
  private readonly watchers = new Set<() => void>();
  private readonly outbox: Outbox;
  /** What is shown may be old; everything is being looked at anew. */
  private isStale = false;
  private confirmed: Composition | null = null;
  /** Counts how often the line came and went: what was begun on an earlier one must not go on. */
  private turns = 0;
  private readonly paths = new Map<string, string[]>();
  private wanted: { unit: string; path: string[]; granted: () => void; refused: (error: Error) => void } | null = null;
  private cursor: Cursor | null = null;
  private stopPointing: (() => void) | null = null;

  constructor(
    private readonly world: World,
    private readonly memory: Memory,
    private readonly notice: (notice: Notice) => void,
  ) {
    const orphaned = (error: Error) => notice({ kind: "refused", message: error.message });
    const changed = () => {
      this.remember();
      this.show({});
    };
    this.outbox = new Outbox(memory.pending, orphaned, (pending) => this.ship(pending), changed);
    const listener = {
      state: (state: State) => void this.joined(state),
      event: (event: RoomEvent) => this.happened(event),
      lost: () => this.lost(),
    };
    this.line = new Connection(world, listener, memory.session);
    this.line.open();
  }

  subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  };

  /** Hears where others point. */
  watch = (listener: () => void) => {
    this.watchers.add(listener);
    return () => void this.watchers.delete(listener);
  };

  /** Goes, with all locks. */
  leave() {
    this.line.say({ type: "leave" });
    this.line.close();
    if (this.outbox.length === 0) this.memory.keep(null, []);
  }

  /** Changes something. Kept and said again until the server has answered, whatever happens to the connection. */
  do(changes: Change[], { note = "", units = [] as string[], seen = {} as Record<string, number> } = {}): Promise<number> {
    return this.outbox.add({ changes, note, units, seen });
  }

  /** Takes back what this user has done last, or does it again. What came of it is not told, so everything is looked at. */
  async turn(ask: Extract<Ask, { type: "undo" | "redo" | "restore" }>) {
    await this.outbox.settled();
    this.isStale = true;
    try {
      await this.line.ask(ask);
    } finally {
      await this.look();
    }
  }

  async ask(ask: Extract<Ask, { type: "name" | "publish" | "hand-over" | "give" | "break" }>) {
    await this.line.ask(ask);
  }

  /** Locks a part. If others have it and it is worth waiting, this takes until they let go. */
  async lock(unit: string, path: string[], wait: boolean): Promise<void> {
    const done = await this.line.ask({ type: "lock", wants: [{ unit, mode: "X", path }], wait });
    if (done.locks) {
      this.paths.set(unit, path);
      this.show({ held: { ...this.view!.held, ...done.locks } });
      return;
    }
    this.show({ waiting: { unit, position: done.waits?.position ?? 1, blockers: done.waits?.blockers ?? [] } });
    await new Promise<void>((granted, refused) => {
      this.wanted = { unit, path, granted, refused };
    });
  }

  /** Does not wait any more. */
  cancel() {
    if (!this.wanted) return;
    this.line.say({ type: "cancel" });
    this.wanted.refused(new Lost());
    this.wanted = null;
    this.show({ waiting: null });
  }

  release(unit: string) {
    if (!this.view || !Object.hasOwn(this.view.held, unit)) return;
    this.forget(unit);
    this.line.say({ type: "release", units: [unit] });
  }

  /** Says that a lock is in use, so that it is not taken for idle. */
  touch(unit: string) {
    const path = this.paths.get(unit);
    if (path) this.line.say({ type: "lock", wants: [{ unit, mode: "X", path }], wait: false });
  }

  /** Shows others where this window is, at most so often. */
  point(cursor: Cursor) {
    this.cursor = cursor;
    this.stopPointing ??= this.world.after(POINT_EVERY, () => {
      this.stopPointing = null;
      if (this.cursor) this.line.say({ type: "point", cursor: this.cursor });
    });
  }

  // What comes from the server.

  private async joined(state: State) {
    const turn = ++this.turns;
    const before = this.confirmed;
    const held = Object.keys(this.view?.held ?? {});
    this.outbox.pause();
    this.take(state);
    this.outbox.acknowledge(state.last_op, state.seq, (pending) => this.renewSeen(pending, before, state));
    this.remember();
    // Until they are asked for again, locks from before have no number that counts.
    this.show({ line: "live", held: Object.fromEntries(held.map((unit) => [unit, 0])), waiting: null });
    for (const unit of held) {
      await this.relock(unit);
      if (turn !== this.turns) return;
    }
    if (this.wanted) {
      const { unit, path, granted, refused } = this.wanted;
      this.wanted = null;
      this.lock(unit, path, true).then(granted, refused);
    }
    if (this.cursor) this.point(this.cursor);
    // Locks come first, so that what counts on them finds them.
    this.outbox.resume();
  }

  /** Numbers of versions may be counted anew after a restart; what counts is whether the part is as it was. */
  private renewSeen(pending: Pending, before: Composition | null, state: State) {
    for (const unit of Object.keys(pending.seen)) {
      const same = before && JSON.stringify(contentOf(before, unit)) === JSON.stringify(contentOf(state.composition, unit));
      if (same) pending.seen[unit] = state.versions[unit] ?? 0;
    }
  }

  private async relock(unit: string) {
    try {
      await this.lock(unit, this.paths.get(unit) ?? [], false);
    } catch (error) {
      // Otherwise the connection is gone again, and the lock is asked for when it is back.
      if (!(error instanceof Refusal)) return;
      this.forget(unit);
      this.notice({ kind: "lost", unit, why: "away" });
    }
  }

  private take(state: State) {
    const now = this.world.now();
    this.confirmed = state.composition;
    this.isStale = false;
    const others = state.people.filter((p) => p.session !== state.session);
    this.cursors = new Map(others.flatMap((p) => (p.cursor ? [[p.session, p.cursor] as const] : [])));
    this.view = {
      line: "live",
      held: {},
      waiting: null,
      ...this.view,
      session: state.session,
      role: state.role,
      composition: state.composition,
      versions: state.versions,
      seq: state.seq,
      people: state.people.map(({ session, user }) => ({ session, user })),
      locks: state.locks.map((l) => ({ ...l, at: now - (l.since ?? 0) })),
      named: state.named,
      published: state.published ?? null,
      pending: this.outbox.length,
    };
    this.tellWatchers();
  }

  private lost() {
    this.turns += 1;
    this.outbox.pause();
    if (this.view) this.show({ line: "reconnecting", people: [] });
    this.cursors = new Map();
    this.tellWatchers();
  }

  private happened(event: RoomEvent) {
    const view = this.view;
    if (!view) return;
    switch (event.event) {
      case "joined":
        return this.show({ people: [...view.people.filter((p) => p.session !== event.session), { session: event.session, user: event.user }] });
      case "left":
        this.pointed(event.session, null);
        return this.show({ people: view.people.filter((p) => p.session !== event.session) });
      case "pointed":
        return this.pointed(event.session, event.cursor);
      case "locked":
        return this.locked(event);
      case "released":
        return this.released(event.session, event.unit, event.why);
      case "idle":
      case "asked":
        return this.notice({ kind: event.event, ...event } as Notice);
      case "changed":
        return this.changed(event);
      case "named":
        return this.show({ named: [...view.named.filter((v) => v.name !== event.name), event] });
      case "published":
        return this.show({ published: event, named: view.named.some((v) => v.name === event.name) ? view.named : [...view.named, event] });
    }
  }

  private pointed(session: number, cursor: Cursor | null) {
    const cursors = new Map(this.cursors);
    if (cursor) cursors.set(session, cursor);
    else cursors.delete(session);
    this.cursors = cursors;
    this.tellWatchers();
  }

  private locked(lock: LockView) {
    const view = this.view!;
    const is = (l: LockView) => l.session === lock.session && l.unit === lock.unit;
    const at = view.locks.find(is)?.at ?? this.world.now() - (lock.since ?? 0);
    this.show({ locks: [...view.locks.filter((l) => !is(l)), { ...lock, at }] });
    const wanted = this.wanted;
    if (wanted && lock.session === view.session && lock.unit === wanted.unit) {
      // It was waited for and is granted now. Its number is told to whoever asks for it again.
      this.wanted = null;
      this.show({ waiting: null });
      this.lock(wanted.unit, wanted.path, false).then(wanted.granted, wanted.refused);
    }
  }

  private released(session: number, unit: string, why: Why) {
    const view = this.view!;
    this.show({ locks: view.locks.filter((l) => l.session !== session || l.unit !== unit) });
    if (session !== view.session || !Object.hasOwn(view.held, unit)) return;
    this.forget(unit);
    if (why !== "wanted") this.notice({ kind: "lost", unit, why });
  }

  private changed(applied: Applied) {
    const view = this.view!;
    if (this.isStale || applied.seq <= view.seq) return;
    if (applied.seq !== view.seq + 1) return void this.look();
    this.done(applied.seq, applied.changes, applied.units);
  }

  /** An operation is in the composition now. */
  private done(seq: number, changes: Change[], units: string[]) {
    this.confirmed = changes.reduce(apply, this.confirmed!);
    const versions = { ...this.view!.versions };
    for (const unit of units) versions[unit] = seq;
    this.show({ seq, versions });
  }

  /** Looks at everything anew. */
  private async look() {
    this.isStale = true;
    try {
      const { state } = await this.line.ask({ type: "state" });
      if (!state) return;
      this.take(state);
      this.show({});
    } catch {
      // The connection is gone; everything comes with the next one.
    }
  }

  /** Says an operation to the server. Others hear of it; this window knows what it has said. */
  private async ship({ op, changes, note, seen, units }: Pending): Promise<number> {
    const held = this.view!.held;
    const tokens = Object.fromEntries(units.flatMap((u) => (held[u] ? [[u, held[u]]] : [])));
    const { seq = 0 } = await this.line.ask({ type: "do", op, changes, note, seen, tokens });
    if (this.view!.seq + 1 === seq) this.done(seq, changes, touched(changes, changes.reduce(apply, this.confirmed!)));
    else await this.look();
    return seq;
  }

  private forget(unit: string) {
    const { [unit]: _, ...held } = this.view!.held;
    this.show({ held });
  }

  private remember() {
    this.memory.keep(this.line.session, this.outbox.pending);
  }

  private show(changed: Partial<View>) {
    if (!this.view || !this.confirmed) return;
    // Where nodes are drawn is nobody's, so that is shown at once.
    const moves = this.outbox.pending.flatMap((q) => q.changes).filter((c) => c.change === "move-node");
    this.view = { ...this.view, ...changed, composition: moves.reduce<Composition>(apply, this.confirmed), pending: this.outbox.length };
    for (const listener of this.listeners) listener();
  }

  private tellWatchers() {
    for (const watcher of this.watchers) watcher();
  }
}
