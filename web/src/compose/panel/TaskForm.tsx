import { useEffect, useId, useRef, useState } from "react";
import { useQuery } from "../../api/query";
import type { ServiceView } from "../../api/types";
import { servicesOf } from "../model/edit";
import { place, type Step } from "../model/place";
import { workflowOf } from "../model/read";
import type { Interface, Task } from "../model/types";
import { useStudio } from "../studio";
import { PartForm } from "./PartForm";
import styles from "../compose.module.css";

/** The task of a workflow: a script, or a service with its parameters, and settings. */
export function TaskForm({ trail }: { trail: Step[] }) {
  const { view } = useStudio();
  const id = useId();
  const workflow = trail.at(-1)!.workflow;
  const ports = workflowOf(view.composition, workflow)?.interface ?? { inputs: [], outputs: [] };
  return (
    <PartForm kind="set-task" unit={place.task(workflow)} title="Task" trail={trail}>
      {({ value, edit, readOnly, disabled }) => {
        const { task } = value;
        const { run, service, ...rest } = task.action;
        const isService = service !== undefined;
        const action = (to: Record<string, unknown>) => edit({ task: { ...task, action: to } });
        return (
          <>
            <div className={styles.checks} role="radiogroup" aria-label="Kind of task">
              <label>
                <input type="radio" name={`${id}k`} checked={!isService} disabled={disabled} onChange={() => action({ run: "", ...rest })} /> Script
              </label>
              <label>
                <input type="radio" name={`${id}k`} checked={isService} disabled={disabled} onChange={() => action({ service: "", ...rest })} /> Service
              </label>
            </div>
            {isService ? (
              <ServiceFields task={task} ports={ports} readOnly={readOnly} onService={(id) => action({ service: id, ...rest })} onTask={(to) => edit({ task: to })} />
            ) : (
              <div className={styles.field}>
                <label htmlFor={`${id}r`}>Script</label>
                <textarea id={`${id}r`} className={styles.script} rows={6} spellCheck={false} value={String(run ?? "")} readOnly={readOnly} onChange={(e) => action({ run: e.target.value, ...rest })} />
                <span className={styles.hint}>
                  {ports.inputs.length + ports.outputs.length > 0 ? "Ports are written as " : "Ports are written in braces, as {name}."}
                  {[...ports.inputs, ...ports.outputs].map((p) => (
                    <code key={p.id}>{`{${p.id}} `}</code>
                  ))}
                </span>
              </div>
            )}
            <OtherSettings rest={rest} readOnly={readOnly} onChange={(other) => action({ ...(isService ? { service } : { run }), ...other })} />
          </>
        );
      }}
    </PartForm>
  );
}

function ServiceFields({ task, ports, readOnly, onService, onTask }: { task: Task; ports: Interface; readOnly: boolean; onService: (id: string) => void; onTask: (task: Task) => void }) {
  const { view } = useStudio();
  const { data = [] } = useQuery<ServiceView[]>("/services");
  const id = useId();
  const service = String(task.action["service"] ?? "");
  const known = [...servicesOf(view.composition), ...data];
  const parameters = known.find((s) => s.id === service)?.parameters ?? [];
  return (
    <>
      <label className={styles.field}>
        Service
        <input list={`${id}s`} value={service} readOnly={readOnly} onChange={(e) => onService(e.target.value)} />
      </label>
      <datalist id={`${id}s`}>
        {known.map((s) => (
          <option key={s.id} value={s.id} />
        ))}
      </datalist>
      <datalist id={`${id}p`}>
        {parameters.map((p) => (
          <option key={p.id} value={p.id} />
        ))}
      </datalist>
      {ports.inputs.map((port) => (
        <label key={port.id} className={styles.valueRow}>
          <span>{port.name} is the parameter</span>
          <input
            list={`${id}p`}
            placeholder={port.id}
            value={task.inputs?.[port.id] ?? ""}
            readOnly={readOnly}
            onChange={(e) => {
              const { [port.id]: _, ...others } = task.inputs ?? {};
              onTask({ ...task, inputs: e.target.value ? { ...others, [port.id]: e.target.value } : others });
            }}
          />
        </label>
      ))}
      {ports.outputs.map((port) => (
        <label key={port.id} className={styles.valueRow}>
          <span>{port.name} is the parameter</span>
          <input
            list={`${id}p`}
            placeholder={port.id}
            value={task.outputs?.[port.id]?.parameter ?? ""}
            readOnly={readOnly}
            onChange={(e) => {
              const { parameter: _, ...settings } = task.outputs?.[port.id] ?? {};
              const output = e.target.value ? { ...settings, parameter: e.target.value } : settings;
              onTask({ ...task, outputs: { ...task.outputs, [port.id]: output } });
            }}
          />
        </label>
      ))}
    </>
  );
}

/** Everything else that an action can have, as JSON. */
function OtherSettings({ rest, readOnly, onChange }: { rest: Record<string, unknown>; readOnly: boolean; onChange: (rest: Record<string, unknown>) => void }) {
  const now = JSON.stringify(rest);
  const [text, setText] = useState("");
  const [isWrong, setWrong] = useState(false);
  const typed = useRef("");
  // What comes from elsewhere is shown; what was typed here stays as it was typed.
  useEffect(() => {
    if (typed.current === now) return;
    typed.current = now;
    setText(now === "{}" ? "" : JSON.stringify(JSON.parse(now), null, 2));
    setWrong(false);
  }, [now]);
  const type = (to: string) => {
    setText(to);
    try {
      const read: unknown = to.trim() === "" ? {} : JSON.parse(to);
      const isRecord = typeof read === "object" && read !== null && !Array.isArray(read);
      setWrong(!isRecord);
      if (!isRecord) return;
      typed.current = JSON.stringify(read);
      onChange(read as Record<string, unknown>);
    } catch {
      setWrong(true);
    }
  };
  return (
    <details>
      <summary>Settings: resources, capabilities, retries …</summary>
      <div className={styles.field}>
        <textarea className={styles.script} aria-label="Settings as JSON" rows={3} spellCheck={false} placeholder={'{"resources": {"cpus": 2}}'} value={text} readOnly={readOnly} aria-invalid={isWrong} onChange={(e) => type(e.target.value)} />
        {isWrong && <span className={styles.hint}>This is not JSON yet, so it is not part of what is saved.</span>}
      </div>
    </details>
  );
}
