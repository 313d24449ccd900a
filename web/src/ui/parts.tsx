import { useLayoutEffect, useRef, type ButtonHTMLAttributes, type ReactNode } from "react";
import type { ChainState, Counts, RunState } from "../api/types";
import type { Problem } from "../api/client";
import { Link } from "../app/router";
import { stateToken } from "./colours";
import { CHAIN_STATES, SIGNS, stateWords } from "./states";
import styles from "./ui.module.css";

/** Joins names of classes; what is false is left out. */
export function classes(...names: (string | false | null | undefined)[]): string {
  return names.filter(Boolean).join(" ");
}

type Look = "plain" | "primary" | "danger" | "quiet";

export function Button({ look = "plain", ...rest }: { look?: Look } & ButtonHTMLAttributes<HTMLButtonElement>) {
  const className = classes(styles.button, look !== "plain" && styles[look], rest.className);
  return <button type="button" {...rest} className={className} />;
}

/** A link that looks like a button. */
export function LinkButton({ to, look = "plain", children }: { to: string; look?: Look; children: ReactNode }) {
  return (
    <Link to={to} className={classes(styles.button, look !== "plain" && styles[look])}>
      {children}
    </Link>
  );
}

/** A state in a word, a sign and a colour. */
export function StateBadge({ state, held = false }: { state: ChainState | RunState; held?: boolean }) {
  const shown = held && state === "running" ? "paused" : state;
  const colour = `var(--${stateToken(shown)})`;
  return (
    <span className={styles.badge} data-state={shown}>
      <span aria-hidden="true" style={{ color: colour, fontWeight: 700 }}>
        {SIGNS[shown]}
      </span>
      {stateWords(shown)}
    </span>
  );
}

/** How many chains are in which state, as a bar. */
export function Progress({ counts }: { counts: Counts }) {
  const total = CHAIN_STATES.reduce((sum, s) => sum + counts[s], 0);
  const words = CHAIN_STATES.filter((s) => counts[s] > 0).map((s) => `${counts[s]} ${s}`);
  const text = words.length ? words.join(", ") : "no chains yet";
  return (
    <div className={styles.progress} role="img" aria-label={text} title={text}>
      {CHAIN_STATES.filter((s) => s !== "registered").map((s) => (
        <div key={s} style={{ width: `${(100 * counts[s]) / Math.max(total, 1)}%`, background: `var(--${stateToken(s)})` }} />
      ))}
    </div>
  );
}

/** A dot in any colour, for legends. */
export function Dot({ colour }: { colour: string }) {
  return <span className={styles.dot} style={{ background: colour, display: "inline-block" }} aria-hidden="true" />;
}

/** Words that stand for themselves: capabilities, services. */
export function Chips({ words, none = "" }: { words: string[]; none?: string }) {
  if (words.length === 0) return <span className="soft">{none}</span>;
  return (
    <>
      {words.map((word) => (
        <span key={word} className={styles.chip}>
          {word}
        </span>
      ))}
    </>
  );
}

export function Card({ title, actions, children, className }: { title?: ReactNode; actions?: ReactNode; children: ReactNode; className?: string }) {
  return (
    <section className={classes(styles.card, className)}>
      {(title || actions) && (
        <div className={styles.cardTitle}>
          {title ? <h2>{title}</h2> : <span />}
          {actions}
        </div>
      )}
      {children}
    </section>
  );
}

/** Around a table that may be wider than there is room. It can be reached, and so scrolled, with the keyboard. */
export function TableBox({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div className={styles.tableBox} tabIndex={0} role="region" aria-label={label}>
      {children}
    </div>
  );
}

/** A page with its title; `children` follow below. */
export function Page({ title, actions, children }: { title: ReactNode; actions?: ReactNode; children: ReactNode }) {
  return (
    <div className={styles.page}>
      <div className={styles.pageTitle}>
        <h1>{title}</h1>
        <span className={styles.spring} />
        {actions}
      </div>
      {children}
    </div>
  );
}

/** Something the user should know. A `quiet` one is not read aloud each time it changes. */
export function Note({ kind = "info", quiet = false, children }: { kind?: "info" | "error" | "warn"; quiet?: boolean; children: ReactNode }) {
  const look = { info: "", error: styles.noteError, warn: styles.noteWarn }[kind];
  return (
    <div className={classes(styles.note, look)} role={quiet ? undefined : kind === "error" ? "alert" : "status"}>
      {children}
    </div>
  );
}

/** What went wrong, if something did. */
export function ProblemNote({ problem }: { problem: Problem | undefined }) {
  return problem ? <Note kind="error">{problem.message}</Note> : null;
}

/** There is nothing yet. */
export function Empty({ children }: { children: ReactNode }) {
  return <div className={styles.empty}>{children}</div>;
}

/** Links to the parts of a page. */
export function Tabs({ label, tabs, current }: { label: string; tabs: { id: string; name: ReactNode; to: string }[]; current: string }) {
  return (
    <nav className={styles.tabs} aria-label={label}>
      {tabs.map((tab) => (
        <Link key={tab.id} to={tab.to} className={styles.tab} aria-current={tab.id === current ? "page" : undefined}>
          {tab.name}
        </Link>
      ))}
    </nav>
  );
}

/** A question or a form in front of everything else; Escape closes it. The first of its buttons changes nothing. */
export function Dialog({ title, onClose, buttons, children }: { title: string; onClose: () => void; buttons?: ReactNode; children: ReactNode }) {
  const element = useRef<HTMLDialogElement>(null);
  // Closed while it is still there, so that the focus goes back to where it was before.
  useLayoutEffect(() => {
    const dialog = element.current;
    if (!dialog) return;
    dialog.showModal();
    // Who is asked something begins with the answer, and with one that does no harm; not with the button that closes it.
    const field = dialog.querySelector<HTMLElement>("input, select, textarea");
    (field ?? dialog.querySelector<HTMLElement>(`.${styles.dialogButtons} button`))?.focus();
    return () => dialog.close();
  }, []);
  return (
    <dialog ref={element} className={styles.dialog} aria-label={title} onCancel={(e) => (e.preventDefault(), onClose())}>
      <div className={styles.cardTitle}>
        <h2>{title}</h2>
        <Button look="quiet" aria-label="Close" onClick={onClose}>
          ✕
        </Button>
      </div>
      {children}
      {buttons && <div className={styles.dialogButtons}>{buttons}</div>}
    </dialog>
  );
}
