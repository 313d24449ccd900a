import { useSyncExternalStore, type ReactNode } from "react";
import { Listeners } from "../app/listeners";
import { Button, classes } from "./parts";
import styles from "./ui.module.css";

interface Toast {
  id: number;
  kind: "info" | "error";
  text: string;
  /** What the user can do about it. */
  actions: { label: string; act: () => void }[];
}

/** A message that asks for nothing is shown for so many milliseconds. */
const SHOWN = 6000;

let toasts: Toast[] = [];
let next = 1;
const listeners = new Listeners();

function change(to: Toast[]) {
  toasts = to;
  listeners.tell();
}

/** Takes a message away. */
export function dismiss(id: number) {
  change(toasts.filter((t) => t.id !== id));
}

/** Tells the user something. It stays for a while, or until it is taken away if there is something to do about it. */
export function tell(text: string, { kind = "info" as Toast["kind"], actions = [] as Toast["actions"] } = {}): number {
  const id = next++;
  change([...toasts.slice(-4), { id, kind, text, actions }]);
  if (actions.length === 0 && kind === "info") setTimeout(() => dismiss(id), SHOWN);
  return id;
}

/** Tells the user that something went wrong. */
export function complain(error: unknown): number {
  const text = error instanceof Error ? error.message : String(error);
  return tell(text, { kind: "error" });
}

/** Does something, and complains if it goes wrong. */
export async function attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    complain(error);
    return undefined;
  }
}

export function Toasts(): ReactNode {
  const shown = useSyncExternalStore(listeners.subscribe, () => toasts);
  return (
    <div className={styles.toasts} role="log" aria-live="polite" aria-label="Messages">
      {shown.map((toast) => (
        <div key={toast.id} className={classes(styles.toast, toast.kind === "error" && styles.toastError)}>
          <div className={styles.toastBody}>
            {toast.text}
            {toast.actions.length > 0 && (
              <div className={styles.toastButtons}>
                {toast.actions.map((action) => (
                  <Button key={action.label} onClick={() => (dismiss(toast.id), action.act())}>
                    {action.label}
                  </Button>
                ))}
              </div>
            )}
          </div>
          <Button look="quiet" aria-label="Dismiss" onClick={() => dismiss(toast.id)}>
            ✕
          </Button>
        </div>
      ))}
    </div>
  );
}
