/** What a window and the server say to each other about a composition. */
import type { Change, Composition } from "../model/types";

export type Mode = "IS" | "IX" | "S" | "U" | "SIX" | "X";
export type RoomRole = "viewer" | "editor" | "owner";

export interface Wanted {
  unit: string;
  mode: Mode;
  /** The way by which the user came to it. */
  path?: string[];
}

export interface Operation {
  op: number;
  changes: Change[];
  seen?: Record<string, number>;
  tokens?: Record<string, number>;
  note?: string;
}

export type Ask =
  | { type: "lock"; wants: Wanted[]; wait: boolean }
  | { type: "release"; units: string[] }
  | { type: "renew" }
  | { type: "cancel" }
  | { type: "hand-over"; unit: string }
  | { type: "give"; unit: string }
  | { type: "break"; unit: string }
  | ({ type: "do" } & Operation)
  | { type: "undo"; skip: boolean }
  | { type: "redo" }
  | { type: "point"; cursor: Cursor }
  | { type: "name"; name: string }
  | { type: "publish"; name?: string }
  | { type: "restore"; name: string }
  | { type: "state" }
  | { type: "leave" };

export interface Done {
  locks?: Record<string, number>;
  waits?: Waits;
  seq?: number;
  state?: State;
}

export interface Waits {
  position: number;
  blockers: Blocker[];
}

export interface Refused {
  code:
    | "malformed"
    | "too-large"
    | "replayed"
    | "not-allowed"
    | "locked"
    | "deadlock"
    | "waiting"
    | "stale-token"
    | "stale"
    | "invalid"
    | "unknown"
    | "nothing"
    | "moved";
  message: string;
  blockers?: Blocker[];
  alternative?: string;
  theirs?: Theirs[];
}

export interface Blocker {
  session: number;
  user: string;
  unit: string;
  mode: Mode;
  /** For so many milliseconds. */
  since: number;
  waiting?: boolean;
}

export interface Theirs {
  unit: string;
  version: number;
  by: string;
  content: unknown;
}

/** Where somebody is. Nobody remembers it. */
export interface Cursor {
  workflow?: string;
  x?: number;
  y?: number;
  /** Names of the parts that are selected. */
  selection?: string[];
}

export interface LockView {
  session: number;
  user: string;
  unit: string;
  mode: Mode;
  /** For so many milliseconds. */
  since?: number;
}

export interface Version {
  name: string;
  seq: number;
  time: number;
  user: string;
  authors?: string[];
}

export interface Person {
  session: number;
  user: string;
  cursor?: Cursor | null;
}

export interface Applied {
  seq: number;
  time: number;
  user: string;
  session: number;
  op: number;
  changes: Change[];
  units: string[];
  note?: string;
}

export interface State {
  session: number;
  role: RoomRole;
  last_op: number;
  seq: number;
  composition: Composition;
  versions: Record<string, number>;
  people: Person[];
  locks: LockView[];
  named: Version[];
  published?: Version;
}

export type Why = "wanted" | "expired" | "idle" | "handedover" | "broken" | "gone";

export type RoomEvent =
  | { event: "joined"; session: number; user: string }
  | { event: "left"; session: number }
  | { event: "pointed"; session: number; cursor: Cursor | null }
  | ({ event: "locked" } & LockView)
  | { event: "released"; session: number; unit: string; why: Why }
  | { event: "idle"; unit: string; within: number }
  | { event: "asked"; unit: string; by: string; within: number }
  | ({ event: "changed" } & Applied)
  | ({ event: "named" } & Version)
  | ({ event: "published" } & Version);

export type Said = { re: number; ok: Done } | { re: number; error: Refused } | RoomEvent;

/** What was asked for was refused; nothing has changed. */
export class Refusal extends Error {
  constructor(readonly refused: Refused) {
    super(refused.message);
  }
}
