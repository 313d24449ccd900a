import {
  applyNodeChanges,
  Background,
  BackgroundVariant,
  Controls,
  MiniMap,
  Panel,
  ReactFlow,
  useNodesInitialized,
  useReactFlow,
  type Connection,
  type Edge,
  type EdgeChange,
  type NodeChange,
  type ReactFlowInstance,
} from "@xyflow/react";
import "@xyflow/react/dist/style.css";
import { useCallback, useEffect, useMemo, useRef, useState, type DragEvent, type KeyboardEvent, type MouseEvent } from "react";
import { useTheme } from "../../app/theme";
import { tell } from "../../ui/toasts";
import { DRAGGED } from "../items";
import { addLink, removeParts, round } from "../model/edit";
import { graphOf, linkProblem } from "../model/read";
import { isUnplaced } from "../model/placement";
import { place, stepInto } from "../model/place";
import type { Change, End } from "../model/types";
import { NOTHING, useStudio } from "../studio";
import { build, IN, LINK, NODE, OUT, positionsOf, type CanvasEdge, type CanvasNode } from "./build";
import { Cursors } from "./Cursors";
import { LinkEdge } from "./LinkEdge";
import { BorderNode, UseNode } from "./UseNode";
import styles from "../compose.module.css";

const NODE_TYPES = { use: UseNode, border: BorderNode };
const EDGE_TYPES = { link: LinkEdge };
/** Keys move nodes in small steps; where they come to rest is said once. */
const REST = 250;
const FIT = { padding: 0.08, maxZoom: 1.1 };
/** What would be drawn smaller cannot be read. */
const READABLE = 0.35;

/** Shows all of a graph, or where it begins if all of it would be too small. */
export function lookAt(flow: ReactFlowInstance<CanvasNode, CanvasEdge>) {
  const box = document.querySelector(".react-flow")?.getBoundingClientRect();
  const all = flow.getNodesBounds(flow.getNodes());
  if (!box || Math.min(box.width / all.width, box.height / all.height) >= READABLE) return void flow.fitView(FIT);
  const zoom = 0.6;
  const isTall = all.height * zoom > box.height;
  void flow.setViewport({ x: 30 - all.x * zoom, y: isTall ? 30 - all.y * zoom : box.height / 2 - (all.y + all.height / 2) * zoom, zoom });
}

function endOf(id: string | null, port: string | null | undefined): End {
  return id === IN || id === OUT || id === null ? { port: port ?? "" } : { node: id.slice(NODE.length), port: port ?? "" };
}

/** The graph of one workflow, to be looked at and changed. */
export function Canvas({ onDropped }: { onDropped: (what: string, at: { x: number; y: number }) => void }) {
  const studio = useStudio();
  const { view, trail, selection, flaws, frozen, room, select, walk, act } = studio;
  const { composition } = view;
  const workflow = trail.at(-1)!.workflow;
  const theme = useTheme();
  const flow = useReactFlow<CanvasNode, CanvasEdge>();
  const [problem, setProblem] = useState<string | null>(null);

  const shown = useMemo(() => build(view, workflow, selection, flaws), [view, workflow, selection, flaws]);
  const [nodes, setNodes] = useState<CanvasNode[]>(shown.nodes);
  // What is measured and dragged is kept; everything else follows from the composition.
  useEffect(() => {
    setNodes((before) => {
      const known = new Map(before.map((n) => [n.id, n]));
      return shown.nodes.map((node) => {
        const old = known.get(node.id);
        if (!old) return node;
        const position = old.dragging ? old.position : node.position;
        return { ...node, measured: old.measured, dragging: old.dragging, position } as CanvasNode;
      });
    });
  }, [shown]);

  const isMeasured = useNodesInitialized();
  useEffect(() => {
    if (isMeasured) lookAt(flow);
  }, [isMeasured, flow]);

  const selected = useMemo(
    () => [...selection.nodes.map((n) => place.node(workflow, n)), ...selection.links.map((l) => place.link(workflow, l))].slice(0, 8),
    [selection, workflow],
  );
  useEffect(() => room.point({ workflow, selection: selected }), [room, workflow, selected]);
  const point = (event: MouseEvent) => {
    const { x, y } = round(flow.screenToFlowPosition({ x: event.clientX, y: event.clientY }));
    room.point({ workflow, x, y, selection: selected });
  };

  const rested = useRef(new Map<string, { x: number; y: number }>());
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const saveMoves = useCallback(() => {
    const moves = rested.current;
    rested.current = new Map();
    const graph = graphOf(composition, workflow);
    if (!graph) return;
    // Where nobody has said where nodes are, moving one says it for all.
    const all = isUnplaced(graph) ? new Map([...positionsOf(composition, workflow), ...moves]) : moves;
    const changes: Change[] = [];
    for (const [id, at] of all) {
      const node = graph.nodes[id];
      const { x, y } = round(at);
      if (node && (node.x !== x || node.y !== y)) changes.push({ change: "move-node", workflow, id, x, y });
    }
    void act(changes, "moved");
  }, [composition, workflow, act]);

  const onNodesChange = (changes: NodeChange<CanvasNode>[]) => {
    setNodes((before) => applyNodeChanges(changes.filter((c) => c.type !== "select" && c.type !== "remove"), before));
    const selects = changes.filter((c) => c.type === "select" && c.id.startsWith(NODE));
    if (selects.length > 0) {
      select((before) => {
        const ids = new Set(before.nodes);
        for (const c of selects) if (c.type === "select") ids[c.selected ? "add" : "delete"](c.id.slice(NODE.length));
        return { ...before, nodes: [...ids] };
      });
    }
    for (const c of changes) {
      if (c.type !== "position" || c.dragging || !c.position || !c.id.startsWith(NODE) || frozen) continue;
      rested.current.set(c.id.slice(NODE.length), c.position);
      clearTimeout(timer.current);
      timer.current = setTimeout(saveMoves, REST);
    }
  };

  const onEdgesChange = (changes: EdgeChange<CanvasEdge>[]) => {
    const selects = changes.filter((c) => c.type === "select" && c.id.startsWith(LINK));
    if (selects.length === 0) return;
    select((before) => {
      const ids = new Set(before.links);
      for (const c of selects) if (c.type === "select") ids[c.selected ? "add" : "delete"](c.id.slice(LINK.length));
      return { ...before, links: [...ids] };
    });
  };

  const isValid = (c: Connection | Edge): boolean => {
    const found = linkProblem(composition, workflow, endOf(c.source, c.sourceHandle), endOf(c.target, c.targetHandle));
    setProblem(found);
    return found === null;
  };

  const connect = (c: Connection) => {
    setProblem(null);
    void act([addLink(composition, workflow, endOf(c.source, c.sourceHandle), endOf(c.target, c.targetHandle))], "linked");
  };

  const enter = (id: string) => {
    const next = stepInto(composition, workflow, id);
    if (next) walk([...trail, next]);
  };

  const remove = async () => {
    if (frozen) return void tell(frozen);
    if (await act(removeParts(composition, workflow, selection.nodes, selection.links), "removed")) select(NOTHING);
  };

  const onKeyDown = (event: KeyboardEvent) => {
    const target = event.target as HTMLElement;
    if (target.closest("input, textarea, select, button")) return;
    if (event.key === "Delete" || event.key === "Backspace") {
      event.preventDefault();
      void remove();
    } else if (event.key === "Enter") {
      const id = target.closest<HTMLElement>(".react-flow__node")?.dataset["id"];
      if (id?.startsWith(NODE) && selection.nodes.includes(id.slice(NODE.length))) {
        event.preventDefault();
        enter(id.slice(NODE.length));
      }
    } else if (event.key === "Escape") select(NOTHING);
  };

  const drop = (event: DragEvent) => {
    const what = event.dataTransfer.getData(DRAGGED);
    if (!what) return;
    event.preventDefault();
    onDropped(what, flow.screenToFlowPosition({ x: event.clientX, y: event.clientY }));
  };

  return (
    <div className={styles.canvas} onKeyDown={onKeyDown} onMouseMove={point} onDrop={drop} onDragOver={(e) => e.dataTransfer.types.includes(DRAGGED) && e.preventDefault()}>
      <ReactFlow<CanvasNode, CanvasEdge>
        aria-label="Graph"
        nodes={nodes}
        edges={shown.edges}
        nodeTypes={NODE_TYPES}
        edgeTypes={EDGE_TYPES}
        colorMode={theme}
        onNodesChange={onNodesChange}
        onEdgesChange={onEdgesChange}
        onConnect={connect}
        onConnectEnd={(_, state) => {
          if (problem && state.toHandle) tell(problem);
          setProblem(null);
        }}
        isValidConnection={isValid}
        onNodeDoubleClick={(_, node) => node.id.startsWith(NODE) && enter(node.id.slice(NODE.length))}
        nodesDraggable={!frozen}
        nodesConnectable={!frozen}
        connectionRadius={26}
        deleteKeyCode={null}
        zoomOnDoubleClick={false}
        minZoom={0.1}
        onlyRenderVisibleElements={shown.nodes.length > 150}
        fitViewOptions={FIT}
      >
        <Background variant={BackgroundVariant.Dots} gap={20} />
        <Controls showInteractive={false} />
        <MiniMap pannable zoomable ariaLabel="Overview" className={styles.minimap} style={{ width: 150, height: 100 }} />
        <Cursors />
        {problem && (
          <Panel position="bottom-center" className={styles.linkProblem} role="status">
            {problem}
          </Panel>
        )}
      </ReactFlow>
    </div>
  );
}
