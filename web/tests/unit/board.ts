import type { Board, ChainState, Mishap } from "../../src/api/types";
import { CHAIN_STATE_CODES } from "../../src/api/types";

interface Row {
  chain: number;
  state: ChainState;
  kind?: number;
  class?: number;
  agent?: number;
  attempt?: number;
  started?: number;
  ended?: number;
}

/** What the server says of some chains, and of what became known with them. */
export function news(rows: Row[], more: Partial<Omit<Board, "chains">> = {}): Board {
  const column = (of: (row: Row) => number) => rows.map(of);
  return {
    epoch: "one",
    origin: 1000,
    version: 1,
    over: false,
    steps: [],
    kinds: [],
    agents: [],
    classes: [],
    mishaps: [],
    chains: {
      chain: column((r) => r.chain),
      kind: column((r) => r.kind ?? 0),
      state: column((r) => CHAIN_STATE_CODES.indexOf(r.state)),
      class: column((r) => r.class ?? 0),
      agent: column((r) => r.agent ?? -1),
      attempt: column((r) => r.attempt ?? 1),
      registered: column(() => 0),
      started: column((r) => r.started ?? -1),
      ended: column((r) => r.ended ?? -1),
    },
    ...more,
  };
}

/** With times since 1970, as the server says them. */
export function mishap(chain: number, more: Partial<Mishap> = {}): Mishap {
  return { chain, attempt: 1, agent: "a1", started: 1010, ended: 1020, lost: false, message: "exit code 1", ...more };
}
