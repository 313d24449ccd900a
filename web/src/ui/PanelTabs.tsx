import { useId, useRef, type KeyboardEvent, type ReactNode } from "react";
import { classes } from "./parts";
import styles from "./panelTabs.module.css";

interface Props<T extends string> {
  label: string;
  tabs: { id: T; name: string }[];
  current: T;
  onChoose: (id: T) => void;
  /** The tabs share all the width, and what they show scrolls in the height that is left. */
  fills?: boolean;
  children: ReactNode;
}

/** Tabs that are no places of their own. Arrow keys go from one to the next. */
export function PanelTabs<T extends string>({ label, tabs, current, onChoose, fills = false, children }: Props<T>) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);

  function key(event: KeyboardEvent) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    const at = tabs.findIndex((t) => t.id === current);
    const next = (at + by + tabs.length) % tabs.length;
    onChoose(tabs[next]!.id);
    list.current?.querySelectorAll<HTMLElement>("[role=tab]")[next]?.focus();
  }

  return (
    <>
      <div ref={list} className={classes(styles.tabs, fills && styles.filling)} role="tablist" aria-label={label} onKeyDown={key}>
        {tabs.map((tab) => (
          <button
            key={tab.id}
            type="button"
            role="tab"
            id={`${id}-${tab.id}`}
            className={styles.tab}
            aria-selected={tab.id === current}
            aria-controls={`${id}-panel`}
            tabIndex={tab.id === current ? 0 : -1}
            onClick={() => onChoose(tab.id)}
          >
            {tab.name}
          </button>
        ))}
      </div>
      <div
        id={`${id}-panel`}
        role="tabpanel"
        aria-labelledby={`${id}-${current}`}
        className={fills ? styles.fillingBody : styles.body}
        tabIndex={fills ? 0 : undefined}
      >
        {children}
      </div>
    </>
  );
}
