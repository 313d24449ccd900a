import { useState, type ReactNode } from "react";
import { count, shortName } from "../ui/format";
import { Button, classes } from "../ui/parts";
import { attempt } from "../ui/toasts";
import { nameOf } from "./model/read";
import { Avatar } from "./marks";
import { runComposition } from "./run";
import { turn, useStudio } from "./studio";
import styles from "./compose.module.css";

/** Where the user is, who else is there, and what can be done with the composition. */
export function Toolbar({ children }: { children: ReactNode }) {
  const { id, view, room, trail, walk, frozen } = useStudio();
  const { composition } = view;
  const [isBusy, setBusy] = useState(false);
  const run = async (version?: string) => {
    setBusy(true);
    await attempt(() => runComposition(id, version));
    setBusy(false);
  };
  return (
    <div className={styles.toolbar}>
      <nav className={styles.crumbs} aria-label="Way">
        {trail.map((step, i) => {
          const isLast = i === trail.length - 1;
          const name = i === 0 ? composition.name || id : nameOf(composition, step.workflow);
          return (
            <span key={i}>
              {i > 0 && (
                <span aria-hidden="true" className={styles.crumbMark}>
                  ▸
                </span>
              )}
              {isLast ? (
                <h1 className={styles.crumbHere} aria-current="page">
                  {name}
                </h1>
              ) : (
                <button type="button" className={styles.crumb} onClick={() => walk(trail.slice(0, i + 1))}>
                  {name}
                </button>
              )}
            </span>
          );
        })}
      </nav>
      <LineState />
      <span className={styles.spring} />
      <People />
      <Button look="quiet" disabled={frozen !== null} onClick={() => void turn(room, "undo")} aria-label="Undo" title="Undo what you did last (Ctrl+Z)">
        ↶
      </Button>
      <Button look="quiet" disabled={frozen !== null} onClick={() => void turn(room, "redo")} aria-label="Redo" title="Redo (Ctrl+Shift+Z)">
        ↷
      </Button>
      {children}
      <Button disabled={isBusy || view.role === "viewer"} onClick={() => void run()} title="Runs what there is now">
        Run
      </Button>
      {view.published && (
        <Button disabled={isBusy || view.role === "viewer"} onClick={() => void run(view.published!.name)} title={`Runs “${view.published.name}”`}>
          Run published
        </Button>
      )}
    </div>
  );
}

/** Whether the window is connected, and what is not saved yet. */
function LineState() {
  const { view } = useStudio();
  const { line, pending } = view;
  const unsaved = pending > 0 ? `${count(pending, "change")} not yet saved` : "";
  const words = line === "live" ? unsaved || "Live" : ["Reconnecting …", unsaved].filter(Boolean).join(" ");
  return (
    <span className={classes(styles.line, line === "live" ? styles.lineLive : styles.lineLost)} role="status" aria-label="Connection">
      <span aria-hidden="true">{line === "live" ? "●" : "○"}</span> {words}
    </span>
  );
}

function People() {
  const { view } = useStudio();
  const byUser = new Map<string, number>();
  for (const { user } of view.people) byUser.set(user, (byUser.get(user) ?? 0) + 1);
  const me = view.people.find((p) => p.session === view.session)?.user;
  return (
    <span className={styles.people} role="group" aria-label="People here">
      {[...byUser].map(([user, windows]) => (
        <Avatar key={user} user={user} isMe={user === me} title={`${shortName(user)}${user === me ? " (you)" : ""}${windows > 1 ? `, in ${windows} windows` : ""}`} />
      ))}
    </span>
  );
}
