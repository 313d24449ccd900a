import { ReactFlowProvider, useReactFlow, type ReactFlowInstance } from "@xyflow/react";
import { useCallback, useEffect, useMemo, useState } from "react";
import { get } from "../api/client";
import { useQuery } from "../api/query";
import type { CompositionHead, ServiceView } from "../api/types";
import { LinkButton, Button, Empty, Note, Page } from "../ui/parts";
import { attempt, complain, dismiss, tell } from "../ui/toasts";
import { setParameter, usePlace } from "../app/router";
import type { CanvasEdge, CanvasNode } from "./canvas/build";
import { Canvas, lookAt } from "./canvas/Canvas";
import { tidy } from "./canvas/tidy";
import type { Desk } from "./live/desk";
import type { Notice, Room, View } from "./live/room";
import { EMPTY_GRAPH, EMPTY_TASK, servicesOf, taskOfService, placeCopy, placeNew, placeWorkflow, type Spot } from "./model/edit";
import { describePlace, follow, readTrail, writeTrail, type Step } from "./model/place";
import type { Change, Composition } from "./model/types";
import { NODE_WIDTH } from "./model/placement";
import { plain } from "./model/words";
import { Palette, type Item } from "./panel/Palette";
import { SidePanel } from "./panel/SidePanel";
import { Yaml } from "./panel/Yaml";
import { NOTHING, perform, StudioProvider, useStudio, type Flaw, type Selection, type Studio } from "./studio";
import { Toolbar, turn } from "./Toolbar";
import { useRoom, useView } from "./useRoom";
import styles from "./compose.module.css";

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

/** What concerns one's own locks is said where everybody looks. */
function heard({ room, desk }: { room: Room; desk: Desk }, notice: Notice) {
  if (notice.kind === "refused") return void complain(new Error(`A change from before was refused: ${notice.message}`));
  const part = room.view ? describePlace(room.view.composition, notice.unit) : notice.unit;
  const { unit } = notice;
  switch (notice.kind) {
    case "idle": {
      if (desk.isBusy(unit)) return room.touch(unit);
      const shown = tell(`You have not used your lock on ${part} for a while. It ends in ${Math.round(notice.within / 1000)} s.`, {
        actions: [
          { label: "Keep it", act: () => room.touch(unit) },
          { label: "Let go", act: () => desk.leave(unit) },
        ],
      });
      setTimeout(() => dismiss(shown), notice.within);
      return;
    }
    case "asked": {
      const shown = tell(`${notice.by} asks you to hand over ${part}. It goes over in ${Math.round(notice.within / 1000)} s unless you use it.`, {
        actions: [
          { label: "Hand over", act: () => void handOver(room, desk, unit) },
          { label: "Keep it", act: () => room.touch(unit) },
        ],
      });
      setTimeout(() => dismiss(shown), notice.within);
      return;
    }
    case "lost": {
      const why = { expired: "the connection was gone for too long", idle: "it was not used", handedover: "it was handed over", broken: "an owner took it away", gone: "the part is gone", away: "somebody else has it", wanted: "" };
      const rest = desk.part(unit).draft ? " What you typed is kept as a draft." : "";
      tell(`You do not have the lock on ${part} any more: ${why[notice.why]}.${rest}`);
    }
  }
}

/** What was typed is saved first, then the part goes to whoever asked. */
async function handOver(room: Room, desk: Desk, unit: string) {
  await desk.save(unit);
  await attempt(() => room.ask({ type: "give", unit }));
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

/** What is missing, looked at again a moment after something has changed. */
function useFlaws(id: string, seq: number): Flaw[] {
  const [flaws, setFlaws] = useState<Flaw[]>([]);
  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(() => {
      get<{ flaws: Flaw[] }>(`/compositions/${encodeURIComponent(id)}/check`, abort.signal)
        .then((found) => setFlaws(found.flaws.map((f) => ({ ...f, message: plain(f.message) }))))
        .catch(() => undefined);
    }, 400);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [id, seq]);
  return flaws;
}

function Workspace() {
  const studio = useStudio();
  const { view, trail, frozen, act, select, room } = studio;
  const { composition } = view;
  const workflow = trail.at(-1)!.workflow;
  const flow = useReactFlow<CanvasNode, CanvasEdge>();
  const { query } = usePlace();
  const isYaml = query.get("yaml") === "1";
  const [hasPalette, setPalette] = useState(() => window.innerWidth >= 1000);
  const [hasPanel, setPanel] = useState(true);
  const [isTidying, setTidying] = useState(false);

  const add = async (item: Item, at?: Spot) => {
    const spot = at ?? centre(flow, composition, workflow);
    const made = await attempt(() => resolve(item, composition, workflow, spot));
    if (made && (await act(made.changes, "added"))) select({ nodes: [made.node], links: [] });
  };
  const tidyUp = async () => {
    setTidying(true);
    const changes = await attempt(() => tidy(room.view!.composition, workflow));
    if (changes && changes.length > 0) await act(changes, "tidied");
    setTidying(false);
    setTimeout(() => lookAt(flow), 50);
  };
  // There is more or less room for the drawing now.
  useEffect(() => {
    const timer = setTimeout(() => lookAt(flow), 100);
    return () => clearTimeout(timer);
  }, [isYaml, hasPalette, hasPanel, flow]);
  const isGraph = composition.workflows[workflow]?.body.kind === "graph";
  return (
    <div className={styles.page}>
      <Toolbar>
        <Button disabled={frozen !== null || !isGraph || isTidying} onClick={() => void tidyUp()} title="Places the nodes anew">
          {isTidying ? "Tidying …" : "Tidy"}
        </Button>
        <Button aria-pressed={hasPalette} onClick={() => setPalette(!hasPalette)}>
          Palette
        </Button>
        <Button aria-pressed={hasPanel} onClick={() => setPanel(!hasPanel)}>
          Inspector
        </Button>
        <Button aria-pressed={isYaml} onClick={() => setParameter("yaml", isYaml ? null : "1")}>
          YAML
        </Button>
      </Toolbar>
      {frozen && (
        <div className={styles.frozen} role="status">
          {frozen}
        </div>
      )}
      <div className={styles.workspace}>
        {hasPalette && <Palette onAdd={(item) => void add(item)} />}
        <div className={styles.middle}>
          <Canvas key={workflow} onDropped={(what, at) => void add(JSON.parse(what) as Item, at)} />
          {isYaml && <Yaml />}
        </div>
        {hasPanel && <SidePanel />}
      </div>
    </div>
  );
}

/** The middle of what is shown, or the first free place below it. */
function centre(flow: ReactFlowInstance<CanvasNode, CanvasEdge>, composition: Composition, workflow: string): Spot {
  const box = document.querySelector(`.${styles.canvas}`)?.getBoundingClientRect();
  const at = flow.screenToFlowPosition({ x: (box?.left ?? 0) + (box?.width ?? 0) / 2 - 100, y: (box?.top ?? 0) + (box?.height ?? 0) / 2 - 40 });
  const body = composition.workflows[workflow]?.body;
  const taken = body?.kind === "graph" ? Object.values(body.nodes) : [];
  const isTaken = () => taken.some((n) => Math.abs(n.x - at.x) < NODE_WIDTH + 20 && Math.abs(n.y - at.y) < 140);
  while (isTaken()) at.y += 40;
  return at;
}

/** What an entry of the palette means as changes. */
async function resolve(item: Item, composition: Composition, graph: string, at: Spot) {
  switch (item.what) {
    case "task":
      return placeNew(composition, graph, "task", EMPTY_TASK, at);
    case "graph":
      return placeNew(composition, graph, "graph", EMPTY_GRAPH, at);
    case "workflow":
      return placeWorkflow(composition, graph, item.id, at);
    case "service": {
      const known = [...servicesOf(composition), ...(await get<ServiceView[]>("/services"))];
      const service = known.find((s) => s.id === item.id);
      if (!service) throw new Error(`There is no service ${item.id} any more.`);
      return placeNew(composition, graph, item.id, taskOfService(service), at);
    }
    case "copy": {
      const other = await get<Composition>(`/compositions/${encodeURIComponent(item.composition)}?form=json`);
      return placeCopy(composition, graph, other, item.id, at);
    }
  }
}
