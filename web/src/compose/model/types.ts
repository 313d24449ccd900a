/** What is composed, as the server writes it in JSON. */

export interface Composition {
  name: string;
  /** The workflow that runs. */
  root: string;
  settings?: Record<string, unknown>;
  /** Values for the inputs of the root. */
  values?: Record<string, unknown>;
  services?: unknown;
  workflows: Record<string, Workflow>;
}

export interface Workflow {
  name: string;
  description?: string;
  /** Empty for constructs, whose ports follow from what they are applied to. */
  interface: Interface;
  body: Body;
}

export interface Interface {
  inputs: Port[];
  outputs: Port[];
}

export interface Port {
  id: string;
  name: string;
  type: string;
}

export type Body = ({ kind: "task" } & Task) | ({ kind: "graph" } & Graph) | ({ kind: "construct" } & Construct);

export interface Task {
  /** `run` or `service`, and settings of an execute action. */
  action: Record<string, unknown>;
  /** What the task calls the inputs, where that differs. */
  inputs?: Record<string, string>;
  outputs?: Record<string, TaskOutput>;
}

export type TaskOutput = { parameter?: string } & Record<string, unknown>;

export interface Graph {
  nodes: Record<string, Node>;
  links: Record<string, Link>;
}

export interface Node {
  workflow: string;
  label?: string;
  after?: string[];
  x: number;
  y: number;
}

export interface Link {
  from: End;
  to: End;
}

/** A port of a node, or of the workflow itself if there is no node. */
export interface End {
  node?: string;
  port: string;
}

export type Construct = { of: string } & How;

export type How =
  | { construct: "map"; over?: string[] }
  | { construct: "reduce"; carry: string; element: string }
  | { construct: "tree"; left: string; right: string }
  | { construct: "conditional"; when: string; else?: string }
  | { construct: "loop"; while: string; feedback: Record<string, string>; max: number }
  | { construct: "curry"; with: Record<string, unknown> };

export type ConstructName = How["construct"];

export const CONSTRUCTS: ConstructName[] = ["map", "reduce", "tree", "conditional", "loop", "curry"];

/** One change of a composition. Changes that belong together are one operation. */
export type Change =
  | { change: "set-settings"; name: string; values: Record<string, unknown>; services: unknown; settings: Record<string, unknown> }
  | { change: "add-workflow"; id: string; workflow: Workflow }
  | { change: "remove-workflow"; id: string }
  | { change: "set-about"; workflow: string; name: string; description: string }
  | { change: "set-interface"; workflow: string; interface: Interface }
  | { change: "set-task"; workflow: string; task: Task }
  | { change: "set-construct"; workflow: string; construct: Construct }
  | { change: "set-body"; workflow: string; interface: Interface; body: Body }
  | { change: "add-node"; workflow: string; id: string; node: Node }
  | { change: "remove-node"; workflow: string; id: string }
  | { change: "set-node"; workflow: string; id: string; label: string; after: string[] }
  | { change: "move-node"; workflow: string; id: string; x: number; y: number }
  | { change: "add-link"; workflow: string; id: string; link: Link }
  | { change: "remove-link"; workflow: string; id: string }
  | { change: "replace"; composition: Composition };
