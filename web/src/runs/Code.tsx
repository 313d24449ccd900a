import styles from "./runs.module.css";

/** Commands and what they wrote. It can be reached with the keyboard because it may be longer than it is shown. */
export function Code({ label, children }: { label: string; children: string }) {
  return (
    <pre className={styles.code} tabIndex={0} role="group" aria-label={label}>
      {children}
    </pre>
  );
}
