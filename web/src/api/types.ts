/** What the server says, by the names that the workbench uses. */

export type RunState = "running" | "interrupted" | "succeeded" | "partially-succeeded" | "failed" | "cancelled";
export type ChainState = "registered" | "running" | "paused" | "succeeded" | "failed" | "cancelled";
/** Chain states by the numbers that a `Board` has for them. */
export const CHAIN_STATE_CODES: ChainState[] = ["registered", "running", "paused", "succeeded", "failed", "cancelled"];

export type Counts = Record<ChainState, number>;

/** `GET /whoami` */
export interface WhoAmI {
  name: string;
  role: "viewer" | "editor" | "operator" | "agent";
  version: string;
}

/** `GET /runs` (newest first; `?state=&offset=&limit=`), `GET /search?q=` */
export interface RunView {
  run: number;
  name: string;
  state: RunState;
  workflow: string;
  created: number;
  started: number | null;
  ended: number | null;
  error: string | null;
  tasks: number;
  skipped: number;
  results: [string, string[]][] | null;
  priority: number;
  held: boolean;
  chains: Counts;
}

/** `GET /runs/{id}` */
export interface StatusView extends RunView {
  running: { chain: number; tasks: string; since: number; agent: string | null }[];
  failures: FailureView[];
  waiting: WaitingView[];
}

export interface FailureView {
  chain: number;
  attempt: number;
  failure: TaskFailure;
}

export interface TaskFailure {
  task: string;
  message: string;
  command: string;
  tail: string[];
  log: string | null;
  help: string | null;
}

/** `GET /waiting` */
export interface WaitingView {
  capabilities: string[];
  resources: Resources;
  count: number;
  reason: string;
}

/** In thousandths where something can be divided (`cpus`, named quantities), else in bytes. */
export interface Resources {
  cpus: number;
  memory: number;
  disk: number;
  named?: Record<string, number>;
}

/** `GET /runs/{id}/chains/{chain}` */
export interface ChainView {
  chain: number;
  state: ChainState;
  attempt: number;
  failures: number;
  losses: number;
  capabilities: string[];
  priority: number;
  agent: string | null;
  registered: number | null;
  started: number | null;
  ended: number | null;
  tasks: string[];
  history: { state: string; at: number }[];
  /** Its tasks with everything they read and write. */
  files: TaskFiles[];
  /** Earlier attempts that failed, and agents that were lost. */
  mishaps: Mishap[];
}

/** A task of a chain, its command, and its files. */
export interface TaskFiles {
  task: string;
  service: string;
  command: string;
  millis: number | null;
  cached: boolean;
  arguments: {
    /** The parameter of the service. */
    id: string;
    direction: "input" | "output";
    dataType: string;
    /** Paths, or the value itself. */
    values: string[];
    /** Whether the values are files that can be shown: `GET /runs/{id}/chains/{chain}/files/{task}/{argument}/{number}`. */
    files: boolean;
  }[];
}

/**
 * `GET /runs/{id}/board?after=VERSION`: all chains of a run in few bytes, or those that have changed since a version.
 * Tables only have what is new since then. Times are milliseconds after `origin`, -1 if there is none.
 */
export interface Board {
  /** Another one: forget everything and begin with what is here. */
  epoch: string;
  version: number;
  origin: number;
  /** Whether the run has ended, so nothing more will come. */
  over: boolean;
  /** Names of steps. */
  steps: string[];
  /** Chains of a kind execute these steps, one after the other. */
  kinds: number[][];
  agents: string[];
  /** Sets of required capabilities. */
  classes: string[][];
  /** Columns of equal length. */
  chains: {
    chain: number[];
    kind: number[];
    /** See `CHAIN_STATE_CODES`. */
    state: number[];
    class: number[];
    /** -1 if none. */
    agent: number[];
    attempt: number[];
    registered: number[];
    started: number[];
    ended: number[];
  };
  mishaps: Mishap[];
}

/** An attempt that failed, or an agent that was lost. */
export interface Mishap {
  chain: number;
  attempt: number;
  /** The name of the agent. */
  agent: string | null;
  started: number;
  ended: number;
  /** The agent was lost; nothing is wrong with the task. */
  lost: boolean;
  message: string;
}

/** `GET /runs/{id}/graph`: the steps, one node each whatever they loop over, and where they are drawn. */
export interface GraphView {
  nodes: {
    /** As in the board's `steps`. */
    name: string;
    service: string;
    /** What it is applied to each element of. */
    over: string | null;
    conditional: boolean;
    x: number;
    y: number;
    width: number;
    height: number;
  }[];
  /** From, to, and whether it is an order without data. */
  edges: [number, number, boolean][];
  width: number;
  height: number;
}

/** `GET /runs/{id}/critical-path`: what the end waited for, first to last. */
export interface CriticalPath {
  /** From the beginning to the end, in milliseconds. */
  total: number;
  links: {
    chain: number;
    tasks: string[];
    steps: string[];
    agent: string | null;
    /** Between when it could run and when it did. */
    waited: number;
    started: number;
    ended: number;
  }[];
}

/** `GET /runs/{id}/chains/{chain}/provenance`: where what a chain has written comes from. */
export interface Provenance {
  tasks: {
    chain: number;
    task: string;
    command: string;
    agent: string | null;
    started: number | null;
    millis: number | null;
    cached: boolean;
    inputs: string[];
    outputs: string[];
  }[];
  /** There was more than is shown. */
  truncated: boolean;
}

/** `GET /runs/{id}/chains/{chain}/why`: why it is as it is, in words. */
export interface Why {
  reasons: string[];
}

/** `GET /agents` */
export interface AgentView {
  id: string;
  capabilities: string[];
  resources: Resources;
  scheduler: string | null;
  joined: number;
  seen: number;
  /** What it executes and what it holds in advance. */
  chains: { run: number; chain: number; attempt: number; since: number | null; tasks: string[]; resources: Resources }[];
}

/** `GET /fleet` */
export interface FleetView {
  setups: {
    id: string;
    provides: string[];
    resources: Resources;
    min: number;
    max: number;
    provider: string;
    creating: number;
    running: number;
    /** Why machines of it are made, or why none is. */
    why: string[];
  }[];
  pools: { capabilities: string[]; min: number; max: number | null; machines: number }[];
  machines: {
    id: string;
    setup: string;
    state: "creating" | "running" | "destroying" | "destroyed" | "failed";
    created: number;
    changed: number;
    reason: string | null;
  }[];
}

/** `GET /instances` */
export interface InstanceView {
  id: string;
  roles: string;
  host: string;
  since: number;
  until: number;
}

/** `GET /services` */
export interface ServiceView {
  id: string;
  name: string;
  description: string;
  path: string;
  runtime: string;
  requiredCapabilities: string[];
  parameters: { id: string; description: string; type: "input" | "output"; dataType: string }[];
}

/** `GET /compositions` */
export interface CompositionHead {
  id: string;
  name: string;
  creator: string;
  created: number;
  seq: number;
  published: string | null;
}

/** `POST /check` and `POST /runs` refuse with these as `details`. */
export interface Mistake {
  severity: "error" | "warning";
  message: string;
  file?: string;
  line?: number;
  column?: number;
  help?: string;
}

/** `GET /simulate`: what there is to choose from. */
export interface SimulateChoices {
  /** Workflows that can be generated, and how many tasks they have at least. */
  shapes: { id: string; least: number }[];
  /** Clusters by name. Besides these, any described in YAML. */
  clusters: { id: string; description: string }[];
  policies: { id: string; description: string }[];
}

/** `POST /simulate`. Answers with a line of JSON for each `SimulateLine`, as they are known. */
export interface SimulateRequest {
  workflow:
    | { shape: string; tasks: number; seed?: number }
    /** DAX, WfFormat, Pegasus, DAGMan or a workflow of Catena; the name of the file says which. */
    | { file: string; text: string; runtime?: number }
    /** A run that has ended, with the durations it had. */
    | { run: number };
  /** The name of one, or its description in YAML. */
  cluster: string;
  nodes: number[];
  policies: string[];
  seed?: number;
  /** Timelines are told for clusters of this size. */
  timeline?: number;
}

export type SimulateLine =
  | { workload: { name: string; tasks: number } }
  | { figure: Figure }
  | { timeline: SimulatedTimeline }
  | { error: string };

export interface Figure {
  policy: string;
  nodes: number;
  /** In seconds. */
  makespan: number;
  lower_bound: number;
  bytes_moved: number;
  utilisation: number;
  cost: number;
  wasted: number;
}

/** Who was busy with what, in columns of equal length; times in seconds. */
export interface SimulatedTimeline {
  policy: string;
  nodes: number;
  makespan: number;
  names: string[];
  programs: string[];
  node: number[];
  program: number[];
  start: number[];
  end: number[];
  /** 0 counted, 1 was in vain. */
  vain: number[];
}

/** `GET /runs/{id}/events` and `GET /events`, one after the other. */
export type RunEvent = { event: string; run: number } & Record<string, unknown>;
