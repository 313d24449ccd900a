import { useSyncExternalStore, type ReactNode } from "react";
import { Problem } from "../api/client";
import { Button, classes } from "./parts";
import styles from "./ui.module.css";

interface Toast {
  id: number;
  kind: "info" | "error";
  text: string;
  /** What the user can do about it. */
  actions: { label: string; act: () => void }[];
}

let toasts: Toast[] = [];
let next = 1;
const listeners = new Set<() => void>();

function change(to: Toast[]) {
  toasts = to;
  listeners.forEach((listener) => listener());
}

/** Takes a message away. */
export function dismiss(id: number) {
  change(toasts.filter((t) => t.id !== id));
}

/** Tells the user something. It stays for a while, or until it is taken away if there is something to do about it. */
export function tell(text: string, { kind = "info" as Toast["kind"], actions = [] as Toast["actions"], millis = 6000 } = {}): number {
  const id = next++;
  change([...toasts.slice(-4), { id, kind, text, actions }]);
  if (actions.length === 0 && kind === "info") setTimeout(() => dismiss(id), millis);
  return id;
}

/** Tells the user that something went wrong. */
export function complain(error: unknown): number {
  const text = error instanceof Problem || error instanceof Error ? error.message : String(error);
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
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
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
