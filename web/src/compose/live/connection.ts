import { plain } from "../model/words";
import { Refusal, type Ask, type Done, type RoomEvent, type Said, type State } from "./protocol";

/** A line to the server. The browser's WebSocket is one; tests have their own. */
export interface Wire {
  send(text: string): void;
  close(): void;
}

export interface Ears {
  text(text: string): void;
  closed(): void;
}

/** The two places where the world comes in: lines and time. */
export interface World {
  /** Opens a line, for a session that comes back if one is given. */
  connect(session: number | null, ears: Ears): Wire;
  now(): number;
  /** Does something later; what is returned calls it off. */
  after(millis: number, work: () => void): () => void;
}

/** The line was lost before an answer came. Nobody knows whether it was done. */
export class Lost extends Error {
  constructor() {
    super("The connection was lost before the server answered.");
  }
}

const FIRST_PAUSE = 200;
const LONGEST_PAUSE = 2000;
const RENEW_EVERY = 10_000;
/** A line on which nothing was heard for so long is dead. */
const SILENCE = 25_000;

interface Listener {
  /** Everything, as after joining or when another instance has taken over. */
  state(state: State): void;
  event(event: RoomEvent): void;
  /** The line is gone; another one is being opened. */
  lost(): void;
}

/** Asks and hears answers over a line that comes back by itself. */
export class Connection {
  private wire: Wire | null = null;
  private isLive = false;
  private isClosed = false;
  private pause = FIRST_PAUSE;
  private heard = 0;
  /** Requests of one session must grow, also over reloads of the page, so they count from the time. */
  private id: number;
  private readonly waiting = new Map<number, { resolve: (done: Done) => void; reject: (error: Error) => void }>();
  private stops: (() => void)[] = [];

  constructor(
    private readonly world: World,
    private readonly listener: Listener,
    public session: number | null,
  ) {
    this.id = world.now();
  }

  open() {
    if (this.isClosed) return;
    this.heard = this.world.now();
    let isCurrent = true;
    const closed = () => {
      if (!isCurrent) return;
      isCurrent = false;
      this.gone();
    };
    this.wire = this.world.connect(this.session, { text: (text) => isCurrent && this.hear(text), closed });
    this.beat();
  }

  /** Ends it for good. */
  close() {
    this.isClosed = true;
    this.calm();
    this.fail();
    this.wire?.close();
  }

  /** Gives up this line and opens another one. */
  drop() {
    const wire = this.wire;
    this.wire = null;
    wire?.close();
  }

  ask(ask: Ask): Promise<Done> {
    if (!this.isLive || !this.wire) return Promise.reject(new Lost());
    this.id += 1;
    const id = this.id;
    const answer = new Promise<Done>((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    this.wire.send(JSON.stringify({ id, ...ask }));
    return answer;
  }

  /** Asks for something whose answer does not matter. */
  say(ask: Ask) {
    this.ask(ask).catch(() => undefined);
  }

  private hear(text: string) {
    this.heard = this.world.now();
    const said = JSON.parse(text) as Said;
    if ("event" in said) return this.listener.event(said);
    if ("ok" in said && said.re === 0 && said.ok.state) {
      // What was asked of whoever had the composition before is not going to be answered.
      this.fail();
      this.isLive = true;
      this.pause = FIRST_PAUSE;
      this.session = said.ok.state.session;
      return this.listener.state(said.ok.state);
    }
    const asked = this.waiting.get(said.re);
    this.waiting.delete(said.re);
    if ("ok" in said) return asked?.resolve(said.ok);
    if (said.error.code === "moved") {
      asked?.reject(new Lost());
      return this.drop();
    }
    const { message, blockers = [], theirs = [] } = said.error;
    const users = [...blockers.map((b) => b.user), ...theirs.map((t) => t.by)];
    asked?.reject(new Refusal({ ...said.error, message: plain(message, users) }));
  }

  private beat() {
    this.stops.push(
      this.world.after(RENEW_EVERY, () => {
        if (this.world.now() - this.heard > SILENCE) return this.drop();
        this.say({ type: "renew" });
        this.beat();
      }),
    );
  }

  private gone() {
    this.calm();
    this.wire = null;
    this.isLive = false;
    this.fail();
    if (this.isClosed) return;
    this.listener.lost();
    this.stops.push(this.world.after(this.pause, () => this.open()));
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE);
  }

  private fail() {
    const lost = [...this.waiting.values()];
    this.waiting.clear();
    for (const { reject } of lost) reject(new Lost());
  }

  private calm() {
    for (const stop of this.stops) stop();
    this.stops = [];
  }
}
