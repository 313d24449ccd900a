import { ReactFlowProvider } from "@xyflow/react";
import { useCallback, useEffect, useMemo, useState } from "react";
import { useQuery } from "../api/query";
import type { CompositionHead, WhoAmI } from "../api/types";
import { setParameter, usePlace } from "../app/router";
import { Empty, LinkButton, Note, Page } from "../ui/parts";
import type { Desk } from "./live/desk";
import type { Room, View } from "./live/room";
import { follow, readTrail, writeTrail, type Step } from "./model/place";
import type { Change } from "./model/types";
import { heard } from "./notices";
import { NOTHING, perform, StudioProvider, turn, type Selection, type Studio } from "./studio";
import { useFlaws } from "./useFlaws";
import { useRoom, useView } from "./useRoom";
import { Workspace } from "./Workspace";

/** One composition, edited together. */
export default function ComposePage({ id }: { id: string }) {
  const joined = useRoom(id, heard);
  const view = useView(joined);
  if (!joined || !view) return <Arriving id={id} />;
  return (
    <ReactFlowProvider>
      <Editor id={id} room={joined.room} desk={joined.desk} view={view} />
    </ReactFlowProvider>
  );
}

/** Before anything was heard: there may be no such composition. */
function Arriving({ id }: { id: string }) {
  const { data, problem } = useQuery<CompositionHead[]>("/compositions", 3000);
  if (data && !data.some((c) => c.id === id)) {
    return (
      <Page title={id}>
        <Note kind="error">There is no such composition. Perhaps somebody has deleted it.</Note>
        <p>
          <LinkButton to="/compose">All compositions</LinkButton>
        </p>
      </Page>
    );
  }
  return <Empty>{problem ? "The server does not answer. Trying again …" : "Opening the composition …"}</Empty>;
}

function frozenBecause(view: View): string | null {
  if (view.role === "viewer") return "You may look, but not change anything: that needs the role editor.";
  if (view.line !== "live") return "The connection is gone. What you see may be old, and can be changed again when it is back.";
  return null;
}

function Editor({ id, room, desk, view }: { id: string; room: Room; desk: Desk; view: View }) {
  const { composition } = view;
  // The way is in the address, so that one can go back on it, and send it to others.
  const at = usePlace().query.get("at");
  const trail = useMemo(() => follow(composition, readTrail(composition, at)), [composition, at]);
  const [selection, select] = useState<Selection>(NOTHING);
  const flaws = useFlaws(id, view.seq);
  const frozen = frozenBecause(view);
  // A socket that is refused does not say why. This does, and whoever may not come back is signed out.
  useQuery<WhoAmI>(view.line === "live" ? null : "/whoami", 5000);

  const walk = useCallback((to: Step[], then: Selection = NOTHING) => {
    select(then);
    setParameter("at", writeTrail(to) || null, { left: true });
  }, []);
  const act = useCallback((changes: Change[], note?: string, lock?: string) => perform(room, changes, note, lock), [room]);
  const studio: Studio = useMemo(
    () => ({ id, room, desk, view, trail, selection, flaws, frozen, select, walk, act }),
    [id, room, desk, view, trail, selection, flaws, frozen, walk, act],
  );
  useEffect(() => {
    const keys = (event: KeyboardEvent) => {
      const isText = (event.target as HTMLElement).closest("input, textarea, [contenteditable=true]");
      if (isText || !(event.ctrlKey || event.metaKey) || frozen) return;
      const key = event.key.toLowerCase();
      if (key !== "z" && key !== "y") return;
      event.preventDefault();
      void turn(room, key === "y" || event.shiftKey ? "redo" : "undo");
    };
    const unload = (event: BeforeUnloadEvent) => {
      if (room.view?.pending || desk.unsaved > 0) event.preventDefault();
    };
    window.addEventListener("keydown", keys);
    window.addEventListener("beforeunload", unload);
    return () => {
      window.removeEventListener("keydown", keys);
      window.removeEventListener("beforeunload", unload);
    };
  }, [room, desk, frozen]);

  return (
    <StudioProvider value={studio}>
      <Workspace />
    </StudioProvider>
  );
}
