import { useEffect, useMemo, useRef, type FocusEvent, type KeyboardEvent, type ReactNode } from "react";
import { Button, classes } from "../../ui/parts";
import { contentOf, describePlace, pathTo, type Step } from "../model/place";
import { repair } from "../model/edit";
import type { Change } from "../model/types";
import { LockBadge } from "../marks";
import { useOthersLocks, usePart, useStudio } from "../studio";
import { PartTrouble } from "./PartTrouble";
import styles from "../compose.module.css";

type Of<K extends Change["change"]> = Extract<Change, { change: K }>;

/** What the fields of a part are given. */
export interface Fields<K extends Change["change"]> {
  value: Of<K>;
  edit: (changed: Partial<Omit<Of<K>, "change">>) => void;
  /** Put on every input: what is not locked cannot be typed into. */
  readOnly: boolean;
  /** Put on every button and select: these ask for the lock themselves. */
  disabled: boolean;
}

interface Props<K extends Change["change"]> {
  kind: K;
  unit: string;
  title: string;
  /** The way to the workflow the part is in. */
  trail: Step[];
  children: (fields: Fields<K>) => ReactNode;
}

/** The fields of one part: locked when the user comes to them, saved and let go when the user leaves. */
export function PartForm<K extends Change["change"]>({ kind, unit, title, trail, children }: Props<K>) {
  const { view, desk, frozen } = useStudio();
  const part = usePart(unit);
  const others = useOthersLocks(unit);
  const element = useRef<HTMLFieldSetElement>(null);
  const path = useMemo(() => pathTo(trail, unit), [trail, unit]);
  const now = contentOf(view.composition, unit);
  const value = part.draft ?? now;

  // What is not shown any more is left like what was clicked away from.
  useEffect(() => () => desk.leave(unit), [desk, unit]);
  const broken = useMemo(
    () => (part.draft ? repair(view.composition, [part.draft]).filter((c) => c.change === "remove-link").length : 0),
    [view.composition, part.draft],
  );
  if (value?.change !== kind) return null;

  const isMine = part.status === "mine" || (part.status === "lost" && part.draft !== null);
  const isFrozen = frozen !== null && !isMine;
  const enter = (event: FocusEvent) => {
    // Whoever only opens or closes something does not want to change it.
    if (view.role !== "viewer" && !(event.target as HTMLElement).closest("summary")) desk.enter(unit, path);
  };
  const leave = (event: FocusEvent) => {
    if (!element.current?.contains(event.relatedTarget as Element | null)) desk.leave(unit);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void desk.save(unit);
    }
  };
  const edit = (changed: object) => desk.edit(unit, { ...value, ...changed } as Change, path);
  const words = statusWords(part.status, part.draft !== null, view.line === "live");

  return (
    <fieldset
      ref={element}
      className={classes(styles.part, isMine && styles.partMine, others.length > 0 && styles.partTaken)}
      onFocus={enter}
      onBlur={leave}
      onKeyDown={onKeyDown}
      data-unit={unit}
      data-status={part.status}
      aria-label={`${title}: ${describePlace(view.composition, unit)}`}
    >
      <legend className={styles.partTitle}>
        {title}
        {others.map((lock) => (
          <LockBadge key={lock.session} view={view} lock={lock} />
        ))}
        {words && (
          <span className={styles.partStatus} role="status">
            {words}
          </span>
        )}
      </legend>
      {children({ value: value as Of<K>, edit, readOnly: !isMine, disabled: isFrozen || part.status === "refused" || part.status === "saving" })}
      {broken > 0 && part.status === "mine" && <p className={styles.hint}>Saving this removes {broken === 1 ? "a link that does" : `${broken} links that do`} not fit any more.</p>}
      {part.draft && (part.status === "mine" || part.status === "saving") && (
        <div className={styles.partButtons}>
          <Button look="primary" disabled={part.status === "saving"} onClick={() => void desk.save(unit)}>
            Save
          </Button>
          <Button onClick={() => desk.discard(unit)} disabled={part.status === "saving"}>
            Discard
          </Button>
          <span className="soft">Ctrl+Enter saves; so does going elsewhere.</span>
        </div>
      )}
      <PartTrouble unit={unit} part={part} now={now} />
    </fieldset>
  );
}

function statusWords(status: string, hasDraft: boolean, isLive: boolean): string {
  switch (status) {
    case "asking":
      return "asking for the lock …";
    case "mine":
      return hasDraft ? "not saved yet" : "yours to change";
    case "saving":
      return isLive ? "saving …" : "saved once reconnected";
    case "waiting":
      return "in line for it";
    default:
      return "";
  }
}
