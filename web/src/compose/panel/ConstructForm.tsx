import { useId } from "react";
import { mayUse } from "../model/edit";
import { place, type Step } from "../model/place";
import { interfaceOf, nameOf } from "../model/read";
import { readValue, valueText } from "../model/words";
import type { Construct, Interface, Port } from "../model/types";
import { useStudio } from "../studio";
import { PartForm } from "./PartForm";
import styles from "../compose.module.css";

/** What a construct is applied to, and how. */
export function ConstructForm({ trail }: { trail: Step[] }) {
  const { view } = useStudio();
  const { composition } = view;
  const workflow = trail.at(-1)!.workflow;
  const candidates = Object.keys(composition.workflows).filter((id) => mayUse(composition, workflow, id));
  return (
    <PartForm kind="set-construct" unit={place.how(workflow)} title="Construct" trail={trail}>
      {({ value, edit, readOnly, disabled }) => {
        const { construct } = value;
        const set = (changed: object) => edit({ construct: { ...construct, ...changed } as Construct });
        const base = interfaceOf(composition, construct.of);
        return (
          <>
            <p>
              <strong>{construct.construct}</strong> of {nameOf(composition, construct.of)}
            </p>
            <HowFields construct={construct} base={base} readOnly={readOnly} disabled={disabled} set={set} candidates={candidates} />
          </>
        );
      }}
    </PartForm>
  );
}

interface Props {
  construct: Construct;
  base: Interface;
  readOnly: boolean;
  disabled: boolean;
  candidates: string[];
  set: (changed: object) => void;
}

function HowFields({ construct, base, readOnly, disabled, candidates, set }: Props) {
  switch (construct.construct) {
    case "map": {
      const over = construct.over ?? [];
      const isOver = (id: string) => over.length === 0 || over.includes(id);
      const toggle = (id: string, on: boolean) => {
        const next = base.inputs.map((p) => p.id).filter((p) => (p === id ? on : isOver(p)));
        if (next.length > 0) set({ over: next.length === base.inputs.length ? [] : next });
      };
      return (
        <div className={styles.field} role="group" aria-label="Goes through">
          Inputs that become lists
          <div className={styles.checks}>
            {base.inputs.map((p) => (
              <label key={p.id}>
                <input type="checkbox" checked={isOver(p.id)} disabled={disabled} onChange={(e) => toggle(p.id, e.target.checked)} /> {p.name}
              </label>
            ))}
          </div>
        </div>
      );
    }
    case "reduce":
      return (
        <>
          <PortChoice label="Carries what came before" ports={base.inputs} value={construct.carry} disabled={disabled} onChange={(carry) => set({ carry })} />
          <PortChoice label="Takes the element" ports={base.inputs} value={construct.element} disabled={disabled} onChange={(element) => set({ element })} />
        </>
      );
    case "tree":
      return (
        <>
          <PortChoice label="First of a pair" ports={base.inputs} value={construct.left} disabled={disabled} onChange={(left) => set({ left })} />
          <PortChoice label="Second of a pair" ports={base.inputs} value={construct.right} disabled={disabled} onChange={(right) => set({ right })} />
        </>
      );
    case "conditional":
      return (
        <>
          <Condition label="Only if" value={construct.when} ports={base.inputs} readOnly={readOnly} onChange={(when) => set({ when })} />
          <label className={styles.field}>
            Otherwise
            <select value={construct.else ?? ""} disabled={disabled} onChange={(e) => set({ else: e.target.value || undefined })}>
              <option value="">nothing</option>
              {candidates.map((id) => (
                <option key={id}>{id}</option>
              ))}
            </select>
          </label>
        </>
      );
    case "loop":
      return (
        <>
          <Condition label="As long as" value={construct.while} ports={base.inputs} readOnly={readOnly} onChange={(to) => set({ while: to })} />
          {base.outputs.map((o) => (
            <PortChoice key={o.id} label={`${o.name} becomes`} ports={base.inputs} value={construct.feedback[o.id] ?? ""} disabled={disabled} onChange={(to) => set({ feedback: { ...construct.feedback, [o.id]: to } })} />
          ))}
          <label className={styles.field}>
            At most so often
            <input type="number" min={1} value={construct.max} readOnly={readOnly} onChange={(e) => set({ max: Math.max(1, Math.floor(e.target.valueAsNumber) || 1) })} />
          </label>
        </>
      );
    case "curry":
      return (
        <div className={styles.field} role="group" aria-label="Fixed inputs">
          Inputs that are fixed; an empty one stays an input
          {base.inputs.map((p) => (
            <label key={p.id} className={styles.valueRow}>
              <span>
                {p.name} <span className={styles.portType}>{p.type}</span>
              </span>
              <input
                value={valueText(construct.with[p.id], p.type)}
                readOnly={readOnly}
                onChange={(e) => {
                  const { [p.id]: _, ...rest } = construct.with;
                  set({ with: e.target.value === "" ? rest : { ...rest, [p.id]: readValue(e.target.value, p.type) } });
                }}
              />
            </label>
          ))}
        </div>
      );
  }
}

function PortChoice({ label, ports, value, disabled, onChange }: { label: string; ports: Port[]; value: string; disabled: boolean; onChange: (id: string) => void }) {
  return (
    <label className={styles.field}>
      {label}
      <select value={value} disabled={disabled} onChange={(e) => onChange(e.target.value)}>
        {!ports.some((p) => p.id === value) && <option value={value}>{value || "choose …"}</option>}
        {ports.map((p) => (
          <option key={p.id} value={p.id}>
            {p.name} ({p.type})
          </option>
        ))}
      </select>
    </label>
  );
}

function Condition({ label, value, ports, readOnly, onChange }: { label: string; value: string; ports: Port[]; readOnly: boolean; onChange: (text: string) => void }) {
  const id = useId();
  return (
    <div className={styles.field}>
      <label htmlFor={id}>{label}</label>
      <input id={id} className={styles.mono} spellCheck={false} value={value} readOnly={readOnly} onChange={(e) => onChange(e.target.value)} />
      <span className={styles.hint}>
        {ports.map((p) => (
          <code key={p.id}>{`{${p.id}} `}</code>
        ))}
        with == != &lt; &lt;= &gt; &gt;= in and or not
      </span>
    </div>
  );
}
