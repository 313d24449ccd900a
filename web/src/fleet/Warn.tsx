import type { ReactNode } from "react";
import styles from "./fleet.module.css";

/** A few words that somebody should read, with a mark. */
export function Warn({ children }: { children: ReactNode }) {
  return (
    <span className={styles.warn}>
      <span aria-hidden="true">▲</span> {children}
    </span>
  );
}
