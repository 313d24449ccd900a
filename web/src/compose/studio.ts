import { createContext, useContext, useMemo, useSyncExternalStore } from "react";
import { shortName } from "../ui/format";
import { attempt, complain, tell } from "../ui/toasts";
import type { Desk, Part } from "./live/desk";
import { Refusal } from "./live/protocol";
import type { Lock, Room, View } from "./live/room";
import { describePlace, type Step } from "./model/place";
import type { Change } from "./model/types";

/** What is selected in the graph that is shown. Nothing means the workflow itself. */
export interface Selection {
  nodes: string[];
  links: string[];
}

export const NOTHING: Selection = { nodes: [], links: [] };

/** Something that is wrong or missing, as `/check` says it. */
export interface Flaw {
  place: string;
  message: string;
  is_gap: boolean;
}

/** What all parts of the editor share. */
export interface Studio {
  id: string;
  room: Room;
  desk: Desk;
  view: View;
  /** The way the user came by; the last step is what is shown. */
  trail: Step[];
  selection: Selection;
  flaws: Flaw[];
  /** Why nothing can be changed, if that is so. */
  frozen: string | null;
  select: (selection: Selection | ((before: Selection) => Selection)) => void;
  walk: (trail: Step[], selection?: Selection) => void;
  /** Changes something at once; locks are taken for the moment of the change. Says whether it was done. */
  act: (changes: Change[], note?: string, lock?: string) => Promise<boolean>;
}

const StudioContext = createContext<Studio | null>(null);
export const StudioProvider = StudioContext.Provider;

export function useStudio(): Studio {
  const studio = useContext(StudioContext);
  if (!studio) throw new Error("This is only shown within a composition.");
  return studio;
}

/** What this window does with a part. */
export function usePart(unit: string): Part {
  const { desk } = useStudio();
  return useSyncExternalStore(desk.subscribe, () => desk.part(unit));
}

/** Who else has locked a part. */
export function useOthersLocks(unit: string): Lock[] {
  const { view } = useStudio();
  return useMemo(() => view.locks.filter((l) => l.unit === unit && l.session !== view.session), [view.locks, view.session, unit]);
}

/** What a lock means, in words. */
export function lockWords(view: View, lock: Lock): string {
  const doing = lock.mode === "S" || lock.mode === "IS" ? "reads" : "edits";
  const who = lock.session === view.session ? "You" : shortName(lock.user);
  return `${who} ${who === "You" ? doing.replace(/s$/, "") : doing} ${describePlace(view.composition, lock.unit)}`;
}

/** Does an operation, under a lock if it needs one as a whole, and says why if it is refused. */
export async function perform(room: Room, changes: Change[], note?: string, lock?: string): Promise<boolean> {
  if (changes.length === 0) return false;
  const isOurs = lock !== undefined && Object.hasOwn(room.view?.held ?? {}, lock);
  try {
    if (lock !== undefined && !isOurs) await room.lock(lock, [], false);
    await room.do(changes, { note });
    return true;
  } catch (error) {
    const blocker = error instanceof Refusal ? error.refused.blockers?.[0] : undefined;
    if (!blocker) complain(error);
    else {
      const ask = () => void room.ask({ type: "hand-over", unit: blocker.unit }).catch(complain);
      const actions = [
        { label: "Try again", act: () => void perform(room, changes, note, lock) },
        { label: `Ask ${shortName(blocker.user)} to hand over`, act: ask },
      ];
      tell((error as Error).message, { kind: "error", actions });
    }
    return false;
  } finally {
    if (lock !== undefined && !isOurs) room.release(lock);
  }
}

/** Takes something back or does it again, and says who is in the way. */
export async function turn(room: Room, type: "undo" | "redo") {
  try {
    await room.turn(type === "undo" ? { type, skip: false } : { type });
  } catch (error) {
    const code = error instanceof Refusal ? error.refused.code : null;
    if (code === "nothing") tell((error as Error).message);
    else if (code === "stale" && type === "undo") {
      const skip = () => void attempt(() => room.turn({ type: "undo", skip: true }));
      tell((error as Error).message, { actions: [{ label: "Skip it and undo what was before", act: skip }] });
    } else complain(error);
  }
}
