import { Handle, Position, useConnection, useUpdateNodeInternals, type Node, type NodeProps } from "@xyflow/react";
import { memo, useEffect, useSyncExternalStore } from "react";
import { shortName } from "../../ui/format";
import { classes } from "../../ui/parts";
import type { Room } from "../live/room";
import { fits, portAt } from "../model/read";
import { place, stepInto } from "../model/place";
import type { Port } from "../model/types";
import { constructWords } from "../model/words";
import { LockBadge, LockIcon, personStyle } from "../marks";
import { useStudio } from "../studio";
import { IN, NODE, OUT, type BorderData, type UseData } from "./build";
import styles from "../compose.module.css";

/** What people call the last word of the name of a part. */
const PARTS = new Map([
  ["about", "description"],
  ["interface", "ports"],
  ["task", "task"],
  ["construct", "construct"],
  ["how", "construct"],
  ["properties", "node"],
]);
const MARKS = { task: "▪", graph: "◫", construct: "◇" };

/** A workflow that is used, with its ports. */
export const UseNode = memo(function UseNode({ data }: NodeProps<Node<UseData, "use">>) {
  const { view, room, trail, walk } = useStudio();
  const others = useSelectedBy(room, place.node(trail.at(-1)!.workflow, data.id));
  const enter = () => {
    const next = stepInto(view.composition, trail.at(-1)!.workflow, data.id);
    if (next) walk([...trail, next]);
  };
  const shownLocks = data.locks.slice(0, 2);
  return (
    <div
      className={classes(styles.node, data.locks.length > 0 && styles.nodeLocked, others !== null && styles.nodeSelectedByOther)}
      style={others !== null ? personStyle(others) : data.locks[0] ? personStyle(data.locks[0].user) : undefined}
      data-node={data.id}
    >
      {(shownLocks.length > 0 || others !== null) && (
        <div className={styles.nodeBadges}>
          {shownLocks.map((lock) => (
            <LockBadge key={`${lock.session}${lock.unit}`} view={view} lock={lock} label={PARTS.get(lock.unit.split("/").at(-1)!)} />
          ))}
          {data.locks.length > 2 && <span className={styles.lockBadge}>+{data.locks.length - 2}</span>}
          {others !== null && shownLocks.length === 0 && (
            <span className={styles.lockBadge} title={`${shortName(others)} has selected this`}>
              {shortName(others)}
            </span>
          )}
        </div>
      )}
      <div className={styles.nodeHead}>
        <span aria-hidden="true" className={styles.nodeMark}>
          {MARKS[data.kind]}
        </span>
        <span className={styles.nodeTitle}>
          {data.title}
          {data.subtitle && <span className={styles.nodeSubtitle}>{data.subtitle}</span>}
        </span>
        {data.places > 1 && (
          <span className={styles.places} title={`Used in ${data.places} places: a change here is a change in all of them.`}>
            {data.places}×
          </span>
        )}
        {data.script === null && (
          <button type="button" className={classes(styles.enter, "nodrag")} onClick={enter} aria-label={`Open ${data.title}`} title="Open (Enter or double click)">
            ▸
          </button>
        )}
      </div>
      {data.constructs.length > 0 && (
        <div className={styles.constructs}>
          {data.constructs.map((how, i) => (
            <span key={i} className={styles.construct} title={constructWords(how).words}>
              {constructWords(how).sign}
            </span>
          ))}
        </div>
      )}
      {data.flaws.length > 0 && (
        <div className={styles.nodeFlaw} title={data.flaws.join("\n")}>
          ! {data.flaws.length === 1 ? "1 thing is missing" : `${data.flaws.length} things are missing`}
        </div>
      )}
      {data.script !== null && <pre className={styles.nodeScript}>{data.script}</pre>}
      <Handle type="target" position={Position.Left} id="after" className={styles.afterHandle} isConnectable={false} />
      <Handle type="source" position={Position.Right} id="after" className={styles.afterHandle} isConnectable={false} />
      <div className={styles.ports}>
        <Ports node={NODE + data.id} side="input" ports={data.ports.inputs} isFixed={data.isFixed} lockedBy={data.portLock?.user} />
        <Ports node={NODE + data.id} side="output" ports={data.ports.outputs} isFixed={data.isFixed} lockedBy={data.portLock?.user} />
      </div>
    </div>
  );
});

/** The ports of the workflow itself, seen from inside. */
export const BorderNode = memo(function BorderNode({ data }: NodeProps<Node<BorderData, "border">>) {
  const { view } = useStudio();
  const isIn = data.side === "in";
  return (
    <div className={styles.border} style={data.portLock ? personStyle(data.portLock.user) : undefined}>
      <div className={styles.borderTitle}>
        {isIn ? "Inputs" : "Outputs"}
        {data.portLock && <LockBadge view={view} lock={data.portLock} />}
      </div>
      {data.ports.length === 0 && <div className="soft">none</div>}
      <Ports node={isIn ? IN : OUT} side={isIn ? "output" : "input"} ports={data.ports} isFixed={false} lockedBy={undefined} />
    </div>
  );
});

function Ports({ node, side, ports, isFixed, lockedBy }: { node: string; side: "input" | "output"; ports: Port[]; isFixed: boolean; lockedBy: string | undefined }) {
  const { view, trail, frozen } = useStudio();
  const workflow = trail.at(-1)!.workflow;
  // What is being dragged; ports that it does not fit to step back.
  const dragged = useConnection((c) => (c.inProgress && c.fromHandle ? `${c.fromHandle.type}\n${c.fromNode.id}\n${c.fromHandle.id}` : null));
  const fit = (port: Port): boolean | null => {
    if (!dragged) return null;
    const [type, from, id] = dragged.split("\n") as [string, string, string];
    if ((type === "source") === (side === "output")) return from === node && id === port.id ? null : false;
    const end = from === IN || from === OUT ? { port: id } : { node: from.slice(NODE.length), port: id };
    const other = portAt(view.composition, workflow, end, type === "source" ? "from" : "to");
    return other !== undefined && from !== node && (type === "source" ? fits(other.type, port.type) : fits(port.type, other.type));
  };
  const isTarget = side === "input";
  // Links end where ports are drawn; the drawing library looks there again only when it is told to.
  const update = useUpdateNodeInternals();
  const names = ports.map((p) => p.id).join(" ");
  useEffect(() => update(node), [update, node, names]);
  return (
    <ul className={isTarget ? styles.inputs : styles.outputs} aria-label={isTarget ? "takes" : "gives"}>
      {ports.map((port) => {
        const fitting = fit(port);
        return (
          <li key={port.id} className={classes(styles.port, fitting === false && styles.portDim, fitting === true && styles.portFits)}>
            <Handle type={isTarget ? "target" : "source"} position={isTarget ? Position.Left : Position.Right} id={port.id} className={styles.handle} isConnectable={!isFixed && !frozen} />
            <span className={styles.portName}>{port.name}</span> <span className={styles.portType}>{port.type}</span>
            {lockedBy && (
              <span title={`${shortName(lockedBy)} edits the ports`} className={styles.portLock}>
                <LockIcon />
              </span>
            )}
          </li>
        );
      })}
    </ul>
  );
}

/** Somebody else who has selected a part. */
function useSelectedBy(room: Room, unit: string): string | null {
  return useSyncExternalStore(room.watch, () => {
    for (const [session, cursor] of room.cursors) {
      if (!Array.isArray(cursor.selection) || !cursor.selection.includes(unit)) continue;
      return room.view?.people.find((p) => p.session === session)?.user ?? null;
    }
    return null;
  });
}
