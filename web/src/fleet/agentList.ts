import { isSilent, type LoadedAgent } from "./load";

/** What agents can be sorted by. */
export type SortKey = "name" | "load" | "queue" | "seen";
/** Which agents are shown. */
export type Kind = "all" | "busy" | "idle" | "silent";

export interface Order {
  key: SortKey;
  /** The largest, or for names the last, comes first. */
  descending: boolean;
}

const names = new Intl.Collator("en", { numeric: true });

function compare(key: SortKey, a: LoadedAgent, b: LoadedAgent): number {
  switch (key) {
    case "name":
      return 0;
    case "load":
      return a.load - b.load;
    case "queue":
      return a.agent.count - b.agent.count;
    case "seen":
      // Those heard of lately come first, as with the shortest time.
      return b.agent.seen - a.agent.seen;
  }
}

/** The agents that are asked for: every word occurs in the name or in a capability. */
export function pick(agents: LoadedAgent[], words: string, kind: Kind, order: Order, now: number): LoadedAgent[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const picked = agents.filter((a) => {
    const text = [a.agent.id, ...a.agent.capabilities].join(" ").toLowerCase();
    if (!wanted.every((word) => text.includes(word))) return false;
    switch (kind) {
      case "all":
        return true;
      case "busy":
        return a.agent.count > 0;
      case "idle":
        return a.agent.count === 0;
      case "silent":
        return isSilent(a.agent, now);
    }
  });
  const sign = order.descending ? -1 : 1;
  return picked.sort((a, b) => sign * (compare(order.key, a, b) || names.compare(a.agent.id, b.agent.id)));
}
