import { BaseEdge, EdgeLabelRenderer, getBezierPath, type EdgeProps } from "@xyflow/react";
import { memo } from "react";
import { LockBadge } from "../marks";
import { useStudio } from "../studio";
import type { CanvasEdge } from "./build";
import styles from "../compose.module.css";

/** What flows, or an order without data. */
export const LinkEdge = memo(function LinkEdge(props: EdgeProps<CanvasEdge>) {
  const { view } = useStudio();
  const [path, x, y] = getBezierPath(props);
  const lock = props.data?.lock;
  return (
    <>
      <BaseEdge id={props.id} path={path} markerEnd={props.markerEnd} interactionWidth={18} />
      {lock && (
        <EdgeLabelRenderer>
          <div className={styles.edgeBadge} style={{ transform: `translate(-50%, -50%) translate(${x}px, ${y}px)` }}>
            <LockBadge view={view} lock={lock} />
          </div>
        </EdgeLabelRenderer>
      )}
    </>
  );
});
