import type { AgentView, FleetView, Resources, WaitingView } from "../api/types";
import { bytes } from "../ui/format";

/** An agent that was not heard of for so long is worth a look: it speaks every few seconds. */
const SILENT_AFTER = 20_000;

/** More than any machine has: the server says so for what nobody limits. */
const UNLIMITED = 2 ** 60;

export type AgentChain = AgentView["chains"][number];

/** So much of something, of so much that there is. */
export interface Use {
  name: string;
  used: number;
  /** `null` if there is no limit. */
  of: number | null;
  /** How an amount is written. */
  say: (amount: number) => string;
}

/** An agent with what follows from what it has to do. */
export interface LoadedAgent {
  agent: AgentView;
  running: number;
  /** Given to it in advance; it starts them when it can. */
  held: number;
  /** Processors, memory, then named quantities. */
  uses: Use[];
  /** The part of what is scarcest that is in use. */
  load: number;
}

const thousandths = (amount: number) => (amount / 1000).toLocaleString("en", { maximumFractionDigits: 2 });

/** What a task needs or an agent has, as people say it. */
export function resourceWords(resources: Resources): string[] {
  const words: string[] = [];
  if (resources.cpus > 0) words.push(`${thousandths(resources.cpus)} ${resources.cpus === 1000 ? "processor" : "processors"}`);
  if (resources.memory > 0 && resources.memory < UNLIMITED) words.push(`${bytes(resources.memory)} memory`);
  if (resources.disk > 0 && resources.disk < UNLIMITED) words.push(`${bytes(resources.disk)} disk`);
  for (const [name, amount] of Object.entries(resources.named ?? {})) words.push(`${thousandths(amount)} ${name}`);
  return words;
}

function named(resources: Resources, name: string): number {
  const quantities = resources.named ?? {};
  return Object.hasOwn(quantities, name) ? quantities[name]! : 0;
}

const NOTHING: Resources = { cpus: 0, memory: 0, disk: 0 };

function plus(a: Resources, b: Resources): Resources {
  const names = new Set([...Object.keys(a.named ?? {}), ...Object.keys(b.named ?? {})]);
  return {
    cpus: a.cpus + b.cpus,
    memory: a.memory + b.memory,
    disk: a.disk + b.disk,
    named: Object.fromEntries([...names].map((name) => [name, named(a, name) + named(b, name)])),
  };
}

function fits(capacity: Resources, used: Resources): boolean {
  return (
    used.cpus <= capacity.cpus &&
    used.memory <= capacity.memory &&
    used.disk <= capacity.disk &&
    Object.keys(used.named ?? {}).every((name) => named(used, name) <= named(capacity, name))
  );
}

function usesOf(capacity: Resources, used: Resources): Use[] {
  const uses: Use[] = [{ name: "processors", used: used.cpus, of: capacity.cpus, say: thousandths }];
  if (capacity.memory > 0) {
    uses.push({ name: "memory", used: used.memory, of: capacity.memory < UNLIMITED ? capacity.memory : null, say: bytes });
  }
  for (const [name, of] of Object.entries(capacity.named ?? {})) uses.push({ name, used: named(used, name), of, say: thousandths });
  return uses;
}

/**
 * An agent and what it executes. The server knows when it was given a chain; an agent starts the oldest first and never
 * more than fits, so the rest is held in advance. Of many chains only the first are told; others are taken to be like the
 * last of these.
 */
export function loadOf(agent: AgentView): LoadedAgent {
  let used = NOTHING;
  let running = 0;
  while (running < agent.count) {
    const chain = agent.chains[running] ?? agent.chains.at(-1);
    if (!chain || chain.since === null) break;
    const sum = plus(used, chain.resources);
    if (!fits(agent.resources, sum)) break;
    used = sum;
    running += 1;
  }
  const uses = usesOf(agent.resources, used);
  const load = Math.max(0, ...uses.map((use) => (use.of ? use.used / use.of : 0)));
  return { agent, running, held: agent.count - running, uses, load };
}

/** The cluster in a few figures. */
export interface Totals {
  agents: number;
  silent: number;
  uses: Use[];
  running: number;
  held: number;
  waiting: number;
  creating: number;
  failed: number;
}

export function totals(agents: LoadedAgent[], waiting: WaitingView[], fleet: FleetView | undefined, now: number): Totals {
  const uses = new Map<string, Use>();
  for (const use of agents.flatMap((a) => a.uses)) {
    const sum = uses.get(use.name);
    const of = sum ? (sum.of === null || use.of === null ? null : sum.of + use.of) : use.of;
    uses.set(use.name, { ...use, used: (sum?.used ?? 0) + use.used, of });
  }
  const count = (of: (a: LoadedAgent) => number) => agents.reduce((total, a) => total + of(a), 0);
  return {
    agents: agents.length,
    silent: agents.filter((a) => isSilent(a.agent, now)).length,
    uses: [...uses.values()],
    running: count((a) => a.running),
    held: count((a) => a.held),
    waiting: waiting.reduce((total, w) => total + w.count, 0),
    creating: fleet?.machines.filter((m) => m.state === "creating").length ?? 0,
    failed: fleet?.machines.filter((m) => m.state === "failed").length ?? 0,
  };
}

export function isSilent(agent: AgentView, now: number): boolean {
  return now - agent.seen > SILENT_AFTER;
}
