import type { SimulateRequest } from "../api/types";
import { wholeNumber } from "../ui/format";
import { FIXED } from "./templates";

/** Where the workflow comes from. */
export type Source = "shape" | "file" | "run";

/** The cluster that is described on the page itself. */
export const OWN = "own";

/** Everything on the form, as it is written there. */
export interface Choices {
  source: Source;
  shape: string;
  tasks: string;
  /** Another one gives another workflow of the same kind. */
  variant: string;
  file: string;
  text: string;
  /** How many seconds tasks take of which nobody knows. */
  runtime: string;
  run: string;
  /** The name of a cluster, or `OWN`. */
  cluster: string;
  yaml: string;
  nodes: string;
  policies: string[];
  /** Policies by their stages, such as `catena+order:prio`. */
  more: string;
  seed: string;
}

export const USUAL_NODES = "1, 2, 4, 8, 16, 32, 64";
export const USUAL_POLICIES = ["catena", "heft", "adage", "steep"];

/** What suits where the workflow comes from, as with `catena simulate`. */
export function usualCluster(source: Source): string {
  return source === "run" ? "plain" : "adage";
}

/** The choices that an address has; the usual ones for what it does not say. */
export function fromQuery(query: URLSearchParams): Choices {
  const run = query.get("run");
  const source: Source = run !== null ? "run" : query.has("file") ? "file" : "shape";
  // Who writes an address by hand writes `catena+order:prio`, where `+` means a space.
  const policies = query.get("policies")?.replaceAll(" ", "+").split(",").filter(Boolean) ?? USUAL_POLICIES;
  return {
    source,
    shape: query.get("shape") ?? "montage",
    tasks: query.get("tasks") ?? "1000",
    variant: query.get("variant") ?? "1",
    file: query.get("file") ?? "",
    text: "",
    runtime: query.get("runtime") ?? "10",
    run: run ?? "",
    cluster: query.get("cluster") ?? usualCluster(source),
    yaml: FIXED,
    nodes: query.get("nodes")?.replaceAll(",", ", ") ?? USUAL_NODES,
    policies: policies.filter((p) => !isByStages(p)),
    more: policies.filter(isByStages).join(" "),
    seed: query.get("seed") ?? "1",
  };
}

/** What can be shared as an address: all but texts. */
export function toQuery(choices: Choices): string {
  const query = new URLSearchParams();
  switch (choices.source) {
    case "shape":
      query.set("shape", choices.shape);
      query.set("tasks", choices.tasks);
      if (choices.variant !== "1") query.set("variant", choices.variant);
      break;
    case "file":
      query.set("file", choices.file);
      if (choices.runtime !== "10") query.set("runtime", choices.runtime);
      break;
    case "run":
      query.set("run", choices.run);
      break;
  }
  query.set("cluster", choices.cluster);
  query.set("nodes", numbers(choices.nodes).filter(Number.isInteger).join(","));
  query.set("policies", allPolicies(choices).join(","));
  if (choices.seed !== "1") query.set("seed", choices.seed);
  return query.toString().replaceAll("%2C", ",").replaceAll("%3A", ":");
}

/** What is wrong with the form, by the part of it that is. */
export type Wrong = Partial<Record<"workflow" | "cluster" | "nodes" | "policies" | "seed", string>>;

/** What the server is to be asked, or why it cannot be. */
export function toRequest(choices: Choices): { request: SimulateRequest; wrong: Wrong } {
  const wrong: Wrong = {};
  const nodes = numbers(choices.nodes);
  if (nodes.length === 0 || nodes.some((n) => !(Number.isInteger(n) && n >= 1 && n <= 1_000_000))) {
    wrong.nodes = "Write whole numbers of nodes with commas between them, such as 1, 4, 16.";
  }
  const policies = allPolicies(choices);
  if (policies.length === 0) wrong.policies = "Choose at least one policy.";
  const seed = wholeNumber(choices.seed);
  if (seed === null) wrong.seed = "A seed is a whole number.";
  if (choices.cluster === OWN && !choices.yaml.trim()) wrong.cluster = "Describe the cluster, or choose one by its name.";
  const [workflow, problem] = workflowOf(choices);
  if (problem) wrong.workflow = problem;
  const cluster = choices.cluster === OWN ? choices.yaml : choices.cluster;
  const request: SimulateRequest = { workflow, cluster, nodes, policies, seed: seed ?? 1 };
  return { request, wrong };
}

function workflowOf(choices: Choices): [SimulateRequest["workflow"], string | null] {
  switch (choices.source) {
    case "shape": {
      const tasks = wholeNumber(choices.tasks);
      const seed = wholeNumber(choices.variant);
      const problem = tasks === null || tasks < 1 ? "How many tasks? Write a whole number." : seed === null ? "A variant is a whole number." : null;
      return [{ shape: choices.shape, tasks: tasks ?? 0, seed: seed ?? 1 }, problem];
    }
    case "file": {
      const runtime = Number(choices.runtime);
      const file = choices.file.trim() || guessName(choices.text);
      const problem = !choices.text.trim()
        ? "Choose a file, or paste its text."
        : !(runtime >= 0) || choices.runtime.trim() === ""
          ? "How long do tasks take of which nobody knows? Write seconds."
          : null;
      return [{ file, text: choices.text, runtime }, problem];
    }
    case "run":
      return [{ run: wholeNumber(choices.run) ?? 0 }, wholeNumber(choices.run) === null ? "Choose a run." : null];
  }
}

/** A name whose ending fits what a text looks like; the server goes by it. */
export function guessName(text: string): string {
  const start = text.trimStart();
  if (start.startsWith("<")) return "workflow.xml";
  if (start.startsWith("{")) return "workflow.json";
  return "workflow.yaml";
}

/** The numbers of a list; what is none is `NaN`. Each once, the smallest first. */
export function numbers(list: string): number[] {
  const words = list.split(/[\s,;]+/).filter(Boolean);
  return [...new Set(words.map((word) => (/^\d+$/.test(word) ? Number(word) : NaN)))].sort((a, b) => a - b);
}

/** The policies that are chosen, each once. */
export function allPolicies(choices: Choices): string[] {
  return [...new Set([...choices.policies, ...choices.more.split(/[\s,;]+/).filter(Boolean)])];
}

function isByStages(policy: string): boolean {
  return policy.includes(":");
}
