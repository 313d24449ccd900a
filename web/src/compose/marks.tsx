import type { CSSProperties } from "react";
import { colourOfName } from "../ui/colours";
import { ago, shortName } from "../ui/format";
import type { Lock, View } from "./live/room";
import { lockWords } from "./studio";
import styles from "./compose.module.css";

/** The colour of a person, for borders and washes. */
export function personStyle(user: string): CSSProperties {
  return { "--person": colourOfName(user) } as CSSProperties;
}

export function LockIcon() {
  return (
    <svg width="10" height="12" viewBox="0 0 10 12" aria-hidden="true" className={styles.lockIcon}>
      <path d="M2 5V3.5a3 3 0 0 1 6 0V5" fill="none" stroke="currentColor" strokeWidth="1.6" />
      <rect x="0.8" y="5" width="8.4" height="6.4" rx="1.4" fill="currentColor" />
    </svg>
  );
}

/** Who has locked something, for how long, and how. */
export function LockBadge({ view, lock, label }: { view: View; lock: Lock; label?: string | undefined }) {
  const words = `${lockWords(view, lock)}, since ${ago(lock.at)} (${lock.mode})`;
  return (
    <span className={styles.lockBadge} style={personStyle(lock.user)} title={words} aria-label={words} role="img" data-unit={lock.unit}>
      <LockIcon /> <span className={styles.lockWho}>{lock.session === view.session ? "you" : shortName(lock.user)}</span>
      {label && <span className={styles.lockWhat}>{label}</span>}
    </span>
  );
}

/** A person, as a disc with initials. */
export function Avatar({ user, title, isMe = false }: { user: string; title: string; isMe?: boolean }) {
  return (
    <span className={styles.avatar} style={personStyle(user)} title={title} role="img" aria-label={title} data-me={isMe || undefined}>
      {user.slice(0, 2)}
    </span>
  );
}
