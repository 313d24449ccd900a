import { CHAIN_STATE_CODES, type Board, type Counts, type Mishap } from "../api/types";
import { BoardColumns } from "./boardColumns";

const STATES = CHAIN_STATE_CODES.length;

/** All chains of a run as they are known, put together from a board and what has changed since. */
export class BoardState {
  version = 0;
  over = false;
  /** Names of steps, and of agents, in the order in which they became known. */
  readonly steps: string[] = [];
  readonly kinds: number[][] = [];
  readonly agents: string[] = [];
  readonly classes: string[][] = [];
  readonly chains = new BoardColumns();
  /** With times as the chains have them: after the origin. */
  readonly mishaps: Mishap[] = [];
  private readonly mishapOf = new Map<string, number>();
  /** How many chains of each step are in which state: as many numbers per step as there are states. */
  private counted = new Int32Array(0);

  constructor(
    readonly epoch: string,
    readonly origin: number,
  ) {}

  /** Takes in what is new. Rows replace earlier ones of the same chains. Returns whether anything has changed. */
  take(news: Board): boolean {
    const changed = news.over !== this.over || news.chains.chain.length > 0 || news.mishaps.length > 0;
    this.version = news.version;
    this.over = news.over;
    append(this.steps, news.steps);
    append(this.kinds, news.kinds);
    append(this.agents, news.agents);
    append(this.classes, news.classes);
    this.makeRoom();
    const { chains } = this;
    const rows = news.chains;
    for (let i = 0; i < rows.chain.length; i++) {
      let row = chains.rowOf(rows.chain[i]!);
      if (row < 0) row = chains.add(rows.chain[i]!);
      else this.count(chains.kind[row]!, chains.state[row]!, -1);
      chains.kind[row] = rows.kind[i]!;
      chains.state[row] = rows.state[i]!;
      chains.class[row] = rows.class[i]!;
      chains.agent[row] = rows.agent[i]!;
      chains.attempt[row] = rows.attempt[i]!;
      chains.registered[row] = rows.registered[i]!;
      chains.started[row] = rows.started[i]!;
      chains.ended[row] = rows.ended[i]!;
      this.count(chains.kind[row]!, chains.state[row]!, 1);
    }
    for (const mishap of news.mishaps) this.takeMishap(mishap);
    return changed;
  }

  private takeMishap({ started, ended, ...rest }: Mishap) {
    const mishap = { ...rest, started: started - this.origin, ended: ended - this.origin };
    const key = `${mishap.chain} ${mishap.attempt}`;
    const known = this.mishapOf.get(key);
    if (known === undefined) this.mishapOf.set(key, this.mishaps.push(mishap) - 1);
    else this.mishaps[known] = mishap;
  }

  private makeRoom() {
    const needed = this.steps.length * STATES;
    if (needed <= this.counted.length) return;
    const larger = new Int32Array(Math.max(needed, 2 * this.counted.length));
    larger.set(this.counted);
    this.counted = larger;
  }

  private count(kind: number, state: number, by: number) {
    for (const step of this.kinds[kind] ?? []) this.counted[step * STATES + state]! += by;
  }

  /** How many chains of a step are in this state (by its number). */
  countOf(step: number, state: number): number {
    return this.counted[step * STATES + state] ?? 0;
  }

  /** How many chains of a step there are. */
  totalOf(step: number): number {
    let total = 0;
    for (let state = 0; state < STATES; state++) total += this.countOf(step, state);
    return total;
  }

  /** How many chains of a step are in which state, by the names of the states. */
  countsOf(step: number): Counts {
    const counts = {} as Counts;
    CHAIN_STATE_CODES.forEach((state, code) => (counts[state] = this.countOf(step, code)));
    return counts;
  }

  /** The steps that chains of a row execute. */
  stepsOf(row: number): string[] {
    return (this.kinds[this.chains.kind[row]!] ?? []).map((step) => this.steps[step] ?? "?");
  }

  /** For each kind whether its chains execute a step. */
  kindsWith(step: number): Uint8Array {
    return Uint8Array.from(this.kinds, (steps) => (steps.includes(step) ? 1 : 0));
  }
}

/** Unlike `push(...)` this works however many there are. */
function append<T>(to: T[], from: T[]) {
  for (const each of from) to.push(each);
}
