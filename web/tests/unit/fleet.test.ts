import { expect, test } from "@playwright/test";
import type { AgentView, FleetView, Resources } from "../../src/api/types";
import { pick } from "../../src/fleet/agentList";
import { isSilent, loadOf, resourceWords, totals, type AgentChain } from "../../src/fleet/load";

const resources = (cpus: number, memory = 0, named?: Record<string, number>): Resources => ({ cpus, memory, disk: 0, ...(named ? { named } : {}) });
const chain = (needs: Resources, since: number | null = 1): AgentChain => ({ chain: 1, run: 1, attempt: 1, tasks: [], resources: needs, since });

function agent(more: Partial<AgentView> = {}): AgentView {
  const chains = more.chains ?? [];
  return { id: "a", capabilities: [], incarnation: 1, joined: 0, seen: 0, scheduler: null, resources: resources(4000), count: chains.length, ...more, chains };
}

test("an agent executes what fits, the oldest first, and holds the rest in advance", () => {
  const loaded = loadOf(agent({ chains: [chain(resources(2000)), chain(resources(1000)), chain(resources(2000)), chain(resources(500))] }));
  expect(loaded).toMatchObject({ running: 2, held: 2, load: 0.75 });
  expect(loaded.uses.map((u) => [u.name, u.used, u.of])).toEqual([["processors", 3000, 4000]]);
});

test("a chain that was not given to an agent yet does not run", () => {
  expect(loadOf(agent({ chains: [chain(resources(1000)), chain(resources(1000), null)] }))).toMatchObject({ running: 1, held: 1 });
});

test("of many chains the rest is taken to be like the last that is told", () => {
  expect(loadOf(agent({ count: 10, chains: [chain(resources(1000)), chain(resources(500))] }))).toMatchObject({ running: 7, held: 3, load: 1 });
  expect(loadOf(agent({ count: 3, chains: [] }))).toMatchObject({ running: 0, held: 3 });
});

test("what is scarcest says how busy an agent is", () => {
  const own = resources(4000, 1024, { gpu: 2000 });
  const { load, uses, running } = loadOf(agent({ resources: own, chains: [chain(resources(1000, 256, { gpu: 2000 })), chain(resources(0, 0, { gpu: 1 }))] }));
  expect(running).toBe(1);
  expect(load).toBe(1);
  expect(uses.map((u) => `${u.name} ${u.say(u.used)} of ${u.of === null ? "any" : u.say(u.of)}`)).toEqual(["processors 1 of 4", "memory 256 B of 1.0 KiB", "gpu 2 of 2"]);
});

test("what nobody limits is not a part of anything", () => {
  const { uses, load } = loadOf(agent({ resources: resources(1000, 2 ** 62), chains: [chain(resources(500, 2 ** 40))] }));
  expect(uses[1]).toMatchObject({ name: "memory", of: null });
  expect(load).toBe(0.5);
});

test("a quantity may be called as what every object has", () => {
  const own = resources(1000, 0, { constructor: 1000 });
  expect(loadOf(agent({ resources: own, chains: [chain(resources(1, 0, { constructor: 500 }))] })).running).toBe(1);
  expect(loadOf(agent({ resources: resources(1000, 0, {}), chains: [chain(resources(1, 0, { constructor: 1 }))] })).running).toBe(0);
});

test("resources are said as people say them", () => {
  expect(resourceWords({ cpus: 1000, memory: 2 ** 31, disk: 2 ** 62, named: { gpu: 500 } })).toEqual(["1 processor", "2.0 GiB memory", "0.5 gpu"]);
  expect(resourceWords({ cpus: 2500, memory: 0, disk: 1024 })).toEqual(["2.5 processors", "1.0 KiB disk"]);
});

test("the cluster is the sum of its agents", () => {
  const agents = [
    agent({ seen: 100_000, chains: [chain(resources(1000))] }),
    agent({ id: "b", seen: 70_000, resources: resources(8000, 1024), chains: [chain(resources(9000))] }),
  ].map(loadOf);
  const machines = ["creating", "failed", "creating"].map((state) => ({ state }));
  const sum = totals(agents, [{ capabilities: [], count: 5, reason: "", resources: resources(1) }], { machines, pools: [], setups: [] } as unknown as FleetView, 100_000);
  expect(sum).toMatchObject({ agents: 2, silent: 1, running: 1, held: 1, waiting: 5, creating: 2, failed: 1 });
  expect(sum.uses.map((u) => [u.name, u.used, u.of])).toEqual([["processors", 1000, 12_000], ["memory", 0, 1024]]);
  expect(totals([], [], undefined, 0)).toMatchObject({ agents: 0, creating: 0, uses: [] });
});

test("an agent is silent when it was not heard of for a while", () => {
  expect(isSilent(agent({ seen: 1000 }), 21_000)).toBe(false);
  expect(isSilent(agent({ seen: 1000 }), 21_001)).toBe(true);
});

test("agents are found by words in names and capabilities, and sorted as people count", () => {
  const agents = [
    agent({ id: "node-10", capabilities: ["gpu"], seen: 3000, chains: [chain(resources(4000))] }),
    agent({ id: "node-9", capabilities: ["GPU", "big"], seen: 2000 }),
    agent({ id: "other", seen: 90_000, chains: [chain(resources(1000)), chain(resources(1000))] }),
  ].map(loadOf);
  const ids = (words: string, kind: Parameters<typeof pick>[2], key: "name" | "load" | "queue" | "seen", descending = false) =>
    pick(agents, words, kind, { key, descending }, 91_000).map((a) => a.agent.id);
  expect(ids("", "all", "name")).toEqual(["node-9", "node-10", "other"]);
  expect(ids("gpu NODE", "all", "name", true)).toEqual(["node-10", "node-9"]);
  expect(ids("gpu nothing", "all", "name")).toEqual([]);
  expect(ids("", "busy", "load", true)).toEqual(["node-10", "other"]);
  expect(ids("", "idle", "name")).toEqual(["node-9"]);
  expect(ids("", "silent", "seen")).toEqual(["node-10", "node-9"]);
  expect(ids("", "all", "queue", true)).toEqual(["other", "node-10", "node-9"]);
});
