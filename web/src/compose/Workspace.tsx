import { useReactFlow, type ReactFlowInstance } from "@xyflow/react";
import { useEffect, useState } from "react";
import { setParameter, usePlace } from "../app/router";
import { Button } from "../ui/parts";
import { attempt } from "../ui/toasts";
import type { CanvasEdge, CanvasNode } from "./canvas/build";
import { Canvas, lookAt } from "./canvas/Canvas";
import { tidy } from "./canvas/tidy";
import { placeItem, type Item } from "./items";
import type { Spot } from "./model/edit";
import { NODE_WIDTH } from "./model/placement";
import { graphOf } from "./model/read";
import type { Composition } from "./model/types";
import { Palette } from "./panel/Palette";
import { SidePanel } from "./panel/SidePanel";
import { Yaml } from "./panel/Yaml";
import { useStudio } from "./studio";
import { Toolbar } from "./Toolbar";
import styles from "./compose.module.css";

/** The drawing, and around it what it is made of, what is selected, and what can be done. */
export function Workspace() {
  const { view, trail, frozen, act, select, room } = useStudio();
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
    const made = await attempt(() => placeItem(item, composition, workflow, spot));
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
  const isGraph = graphOf(composition, workflow) !== undefined;
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
  const taken = Object.values(graphOf(composition, workflow)?.nodes ?? {});
  const isTaken = () => taken.some((n) => Math.abs(n.x - at.x) < NODE_WIDTH + 20 && Math.abs(n.y - at.y) < 140);
  while (isTaken()) at.y += 40;
  return at;
}
