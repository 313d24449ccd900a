/** What the server says, by the names that the workbench uses. The forms themselves come from its own description. */

import type { components } from "./schema";

type Schemas = components["schemas"];

export type RunState = Schemas["RunState"];
export type ChainState = Schemas["ChainState"];
/** Chain states by the numbers that a `Board` has for them. */
export const CHAIN_STATE_CODES: ChainState[] = ["registered", "running", "paused", "succeeded", "failed", "cancelled"];

export type Counts = Schemas["Counts"];
export type Resources = Schemas["Resources"];

/** `GET /whoami` */
export type WhoAmI = Schemas["WhoAmI"];

/** `GET /runs` (newest first; `?state=&offset=&limit=`), `GET /search?q=` */
export type RunView = Schemas["RunView"];
/** `GET /runs/{id}` */
export type StatusView = Schemas["StatusView"];
export type FailureView = Schemas["FailureView"];
/** `GET /waiting` */
export type WaitingView = Schemas["WaitingView"];

/** `GET /runs/{id}/chains/{chain}` */
export type ChainView = Schemas["ChainDetail"];
/** A task of a chain, its command, and its files. */
export type TaskFiles = Schemas["TaskFiles"];
/** `GET /runs/{id}/board?epoch=EPOCH&after=VERSION` */
export type Board = Schemas["Board"];
export type Mishap = Schemas["Mishap"];
/** `GET /runs/{id}/graph` */
export type GraphView = Schemas["Graph"];
/** `GET /runs/{id}/critical-path` */
export type CriticalPath = Schemas["CriticalPath"];
/** `GET /runs/{id}/chains/{chain}/provenance` */
export type Provenance = Schemas["Provenance"];
/** `GET /runs/{id}/chains/{chain}/why` */
export type Why = Schemas["Why"];

/** `GET /agents` */
export type AgentView = Schemas["Agent"];
/** `GET /fleet` */
export type FleetView = Schemas["Fleet"];
/** `GET /instances` */
export type InstanceView = Schemas["Instance"];
/** `GET /services` */
export type ServiceView = Schemas["Service"];
/** `GET /compositions` */
export type CompositionHead = Schemas["CompositionHead"];
/** `POST /check` */
export type Checked = Schemas["Checked"];
/** `POST /runs` refuses with a list of these as `details`. */
export type Mistake = Schemas["Mistake"];

/** `GET /simulate` */
export type SimulateChoices = Schemas["SimulateChoices"];
/** `POST /simulate` answers with lines of JSON, as they are known. */
export type SimulateRequest = Schemas["SimulateRequest"] & { nodes: number[] };
export type SimulateLine = Schemas["SimulateLine"];
export type Figure = Schemas["Figure"];
export type SimulatedTimeline = Schemas["SimulatedTimeline"];

/** `GET /runs/{id}/events` and `GET /events`, one after the other. */
export type RunEvent = { event: string; run: number } & Record<string, unknown>;
