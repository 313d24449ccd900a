/** Columns that grow: one row per chain of a run. */
export class BoardColumns {
  length = 0;
  chain = new Float64Array(0);
  kind = new Int32Array(0);
  /** See `CHAIN_STATE_CODES`. */
  state = new Uint8Array(0);
  class = new Int32Array(0);
  /** -1 if none. */
  agent = new Int32Array(0);
  attempt = new Int32Array(0);
  /** Milliseconds after the origin of the board, -1 if not yet. */
  registered = new Float64Array(0);
  started = new Float64Array(0);
  ended = new Float64Array(0);
  private readonly rows = new Map<number, number>();

  /** The row of a chain, or -1. */
  rowOf(chain: number): number {
    return this.rows.get(chain) ?? -1;
  }

  /** A row for a chain that has none yet. */
  add(chain: number): number {
    const row = this.length;
    if (row === this.chain.length) this.grow();
    this.length += 1;
    this.chain[row] = chain;
    this.rows.set(chain, row);
    return row;
  }

  private grow() {
    const size = Math.max(1024, this.chain.length * 2);
    this.chain = larger(this.chain, new Float64Array(size));
    this.kind = larger(this.kind, new Int32Array(size));
    this.state = larger(this.state, new Uint8Array(size));
    this.class = larger(this.class, new Int32Array(size));
    this.agent = larger(this.agent, new Int32Array(size));
    this.attempt = larger(this.attempt, new Int32Array(size));
    this.registered = larger(this.registered, new Float64Array(size));
    this.started = larger(this.started, new Float64Array(size));
    this.ended = larger(this.ended, new Float64Array(size));
  }
}

function larger<T extends { set(from: T): void }>(from: T, to: T): T {
  to.set(from);
  return to;
}
