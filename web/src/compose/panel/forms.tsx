import { useId } from "react";
import { place, type Step } from "../model/place";
import { graphOf, interfaceOf } from "../model/read";
import { readValue, valueText } from "../model/words";
import { useStudio } from "../studio";
import { PartForm } from "./PartForm";
import styles from "../compose.module.css";

/** Name and description of a workflow. */
export function AboutForm({ trail }: { trail: Step[] }) {
  const workflow = trail.at(-1)!.workflow;
  return (
    <PartForm kind="set-about" unit={place.about(workflow)} title="About" trail={trail}>
      {({ value, edit, readOnly }) => (
        <>
          <label className={styles.field}>
            Name
            <input value={value.name} placeholder={workflow} readOnly={readOnly} onChange={(e) => edit({ name: e.target.value })} />
          </label>
          <label className={styles.field}>
            Description
            <textarea rows={2} value={value.description} readOnly={readOnly} onChange={(e) => edit({ description: e.target.value })} />
          </label>
        </>
      )}
    </PartForm>
  );
}

/** The label of a node, and what it comes after. */
export function NodeForm({ trail, node }: { trail: Step[]; node: string }) {
  const { view } = useStudio();
  const workflow = trail.at(-1)!.workflow;
  const others = Object.keys(graphOf(view.composition, workflow)?.nodes ?? {}).filter((n) => n !== node);
  return (
    <PartForm kind="set-node" unit={place.properties(workflow, node)} title="Node" trail={trail}>
      {({ value, edit, readOnly, disabled }) => (
        <>
          <label className={styles.field}>
            Label
            <input value={value.label} placeholder={node} readOnly={readOnly} onChange={(e) => edit({ label: e.target.value })} />
          </label>
          {others.length > 0 && (
            <div className={styles.field} role="group" aria-label="Comes after">
              Comes after, without data
              <div className={styles.checks}>
                {others.map((other) => (
                  <label key={other}>
                    <input
                      type="checkbox"
                      disabled={disabled}
                      checked={value.after.includes(other)}
                      onChange={(e) => edit({ after: e.target.checked ? [...value.after, other] : value.after.filter((a) => a !== other) })}
                    />{" "}
                    {other}
                  </label>
                ))}
              </div>
            </div>
          )}
        </>
      )}
    </PartForm>
  );
}

/** The name of the composition, and the values of the inputs of its root. */
export function SettingsForm() {
  const { view } = useStudio();
  const { composition } = view;
  const ports = interfaceOf(composition, composition.root).inputs;
  const id = useId();
  return (
    <PartForm kind="set-settings" unit={place.settings} title="Composition" trail={[{ workflow: composition.root }]}>
      {({ value, edit, readOnly }) => (
        <>
          <label className={styles.field}>
            Name of the composition
            <input value={value.name} readOnly={readOnly} onChange={(e) => edit({ name: e.target.value })} />
          </label>
          {ports.length > 0 && (
            <div className={styles.field} role="group" aria-labelledby={id}>
              <span id={id}>Values of the inputs</span>
              {ports.map((port) => (
                <label key={port.id} className={styles.valueRow}>
                  <span>
                    {port.name} <span className={styles.portType}>{port.type}</span>
                  </span>
                  <input
                    value={valueText(value.values[port.id], port.type)}
                    readOnly={readOnly}
                    onChange={(e) => {
                      const { [port.id]: _, ...rest } = value.values;
                      edit({ values: e.target.value === "" ? rest : { ...rest, [port.id]: readValue(e.target.value, port.type) } });
                    }}
                  />
                </label>
              ))}
            </div>
          )}
        </>
      )}
    </PartForm>
  );
}
