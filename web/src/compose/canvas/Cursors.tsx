import { useStore, ViewportPortal } from "@xyflow/react";
import { useSyncExternalStore } from "react";
import { shortName } from "../../ui/format";
import { personStyle } from "../marks";
import { useStudio } from "../studio";
import styles from "../compose.module.css";

/** Where others are on this drawing. */
export function Cursors() {
  const { room, view, trail } = useStudio();
  const cursors = useSyncExternalStore(room.watch, () => room.cursors);
  const zoom = useStore((s) => s.transform[2]);
  const workflow = trail.at(-1)!.workflow;
  return (
    <ViewportPortal>
      {view.people.map(({ session, user }) => {
        const at = cursors.get(session);
        if (session === view.session || at?.workflow !== workflow || typeof at.x !== "number" || typeof at.y !== "number") return null;
        return (
          <div key={session} className={styles.cursor} style={{ ...personStyle(user), transform: `translate(${at.x}px, ${at.y}px) scale(${1 / zoom})` }} aria-hidden="true">
            <svg width="14" height="18" viewBox="0 0 14 18">
              <path d="M1 1l12 9-6 .8L4 17z" />
            </svg>
            <span>{shortName(user)}</span>
          </div>
        );
      })}
    </ViewportPortal>
  );
}
