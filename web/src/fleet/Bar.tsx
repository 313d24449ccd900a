import { classes } from "../ui/parts";
import type { Use } from "./load";
import styles from "./fleet.module.css";

/** How much of something is in use, as a bar and in words. */
export function Bar({ use }: { use: Use }) {
  const part = use.of ? Math.min(1, use.used / use.of) : 0;
  const words = use.of === null ? `${use.say(use.used)}, no limit` : `${use.say(use.used)} of ${use.say(use.of)}`;
  return (
    <div className={styles.use}>
      <span className={styles.useName}>{use.name}</span>
      <div
        className={styles.bar}
        role="meter"
        aria-label={`${use.name} in use`}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(part * 100)}
        aria-valuetext={words}
      >
        <div className={classes(styles.fill, part > 0.98 && styles.full)} style={{ width: `${part * 100}%` }} />
      </div>
      <span className={styles.useWords}>{words}</span>
    </div>
  );
}
