import type { Ears, World } from "../../src/compose/live/connection";
import type { Pending } from "../../src/compose/live/outbox";
import type { Ask, Said, State } from "../../src/compose/live/protocol";
import { Room, type Memory, type Notice } from "../../src/compose/live/room";
import type { Change, Composition, Task } from "../../src/compose/model/types";

/** What a window has said, as it goes over the line. */
type Heard = Ask & { id: number };
type Kind = Ask["type"];

/** Lets everything happen that waits for nothing but its turn. */
export const turn = () => new Promise<void>((done) => setTimeout(done, 0));

/** One line of the window, seen from the server. */
export class FakeLine {
  readonly heard: Heard[] = [];
  isClosed = false;

  constructor(
    readonly session: number | null,
    private readonly ears: Ears,
  ) {}

  wire() {
    return { send: (text: string) => void this.heard.push(JSON.parse(text) as Heard), close: () => this.cut() };
  }

  /** The line is lost. */
  cut() {
    this.isClosed = true;
    this.ears.closed();
  }

  async say(said: Said) {
    this.ears.text(JSON.stringify(said));
    await turn();
  }

  all<K extends Kind>(type: K): (Extract<Ask, { type: K }> & { id: number })[] {
    return this.heard.filter((h): h is Extract<Ask, { type: K }> & { id: number } => h.type === type);
  }

  /** What was said last of this kind. */
  last<K extends Kind>(type: K): Extract<Ask, { type: K }> & { id: number } {
    const found = this.all(type).at(-1);
    if (!found) throw new Error(`Nothing of the kind “${type}” was said: ${JSON.stringify(this.heard)}`);
    return found;
  }

  /** Answers what was said last of a kind. */
  async answer(type: Kind, ok: Extract<Said, { ok: unknown }>["ok"]) {
    await this.say({ re: this.last(type).id, ok });
  }

  async refuse(type: Kind, error: Extract<Said, { error: unknown }>["error"]) {
    await this.say({ re: this.last(type).id, error });
  }

  async join(known: Partial<State> = {}) {
    await this.say({ re: 0, ok: { state: state(known) } });
  }
}

/** A world in which time only passes when it is told to. */
export class FakeWorld implements World {
  time = 1_000_000;
  readonly lines: FakeLine[] = [];
  private timers: { at: number; work: () => void }[] = [];

  connect(session: number | null, ears: Ears) {
    const line = new FakeLine(session, ears);
    this.lines.push(line);
    return line.wire();
  }

  now() {
    return this.time;
  }

  after(millis: number, work: () => void) {
    const timer = { at: this.time + millis, work };
    this.timers.push(timer);
    return () => {
      this.timers = this.timers.filter((t) => t !== timer);
    };
  }

  async pass(millis: number) {
    const until = this.time + millis;
    for (;;) {
      const [next] = this.timers.filter((t) => t.at <= until).sort((a, b) => a.at - b.at);
      if (!next) break;
      this.timers = this.timers.filter((t) => t !== next);
      this.time = next.at;
      next.work();
      await turn();
    }
    this.time = until;
  }

  /** The line that is open now. */
  get line(): FakeLine {
    return this.lines.at(-1)!;
  }
}

export const UNIT = "workflows/main/task";

export function composition(run: string): Composition {
  const body = { kind: "task", action: { run } } as const;
  return { name: "", root: "main", workflows: { main: { name: "", interface: { inputs: [], outputs: [] }, body } } };
}

export function state(known: Partial<State> = {}): State {
  return { session: 7, role: "editor", last_op: 0, seq: 0, composition: composition("first"), versions: {}, people: [], locks: [], named: [], ...known };
}

export const setRun = (run: string): Change => ({ change: "set-task", workflow: "main", task: { action: { run } } });

/** What the task of the only workflow runs. */
export function runs(of: Composition): unknown {
  return (of.workflows["main"]!.body as Task).action["run"];
}

export class FakeMemory implements Memory {
  constructor(
    public session: number | null = null,
    public pending: Pending[] = [],
  ) {}

  keep(session: number | null, pending: Pending[]) {
    this.session = session;
    this.pending = pending;
  }
}

/** A room whose window has just joined. */
export async function joined(known: Partial<State> = {}, memory = new FakeMemory()) {
  const world = new FakeWorld();
  const notices: Notice[] = [];
  const room = new Room(world, memory, (notice) => notices.push(notice));
  await world.line.join(known);
  return { world, room, memory, notices };
}

/** Cuts the line and lets the window come back on another one. */
export async function away(world: FakeWorld) {
  world.line.cut();
  await world.pass(2000);
}

/** Locks the task for the window. */
export async function locked(world: FakeWorld, room: Room, token = 11) {
  const lock = room.lock(UNIT, ["workflows/main"], false);
  await world.line.answer("lock", { locks: { [UNIT]: token } });
  await lock;
}
