import { useId, type ReactNode } from "react";
import type { Mistake } from "../api/types";
import { Words } from "../ui/Words";
import { mistakeWords } from "./faults";
import styles from "./simulate.module.css";

/** A part of the form with its name, and what is wrong with it. */
export function Group({ title, wrong, mistakes = [], children }: { title: string; wrong?: string; mistakes?: Mistake[]; children: ReactNode }) {
  const id = useId();
  const isWrong = wrong !== undefined || mistakes.length > 0;
  return (
    <fieldset className={styles.group} aria-describedby={isWrong ? id : undefined}>
      <legend>{title}</legend>
      {children}
      {isWrong && (
        <div id={id} className={styles.wrong} role="alert">
          {wrong && <p>{wrong}</p>}
          {mistakes.length > 0 && (
            <ul>
              {mistakes.slice(0, 20).map((mistake, i) => (
                <li key={i}>
                  <Words text={mistakeWords(mistake)} />
                </li>
              ))}
              {mistakes.length > 20 && <li>and {mistakes.length - 20} more</li>}
            </ul>
          )}
        </div>
      )}
    </fieldset>
  );
}

/** An input with its name above. */
export function Field({ name, children }: { name: string; children: ReactNode }) {
  return (
    <label className={styles.field}>
      <span>{name}</span>
      {children}
    </label>
  );
}
