import { useId, useRef, useState } from "react";
import { Button } from "../../ui/parts";
import { place, type Step } from "../model/place";
import { interfaceOf, isName, isType, workflowOf } from "../model/read";
import type { Interface, Port } from "../model/types";
import { useStudio } from "../studio";
import { PartForm } from "./PartForm";
import styles from "../compose.module.css";

const TYPES = ["file", "directory", "string", "integer", "number", "boolean", "any", "[file]", "[integer]", "[string]"];

/** The ports of a workflow. Those of a construct follow from what it is applied to. */
export function PortsForm({ trail }: { trail: Step[] }) {
  const { view } = useStudio();
  const workflow = trail.at(-1)!.workflow;
  const types = useId();
  if (workflowOf(view.composition, workflow)?.body.kind === "construct") {
    const ports = interfaceOf(view.composition, workflow);
    return (
      <div className={styles.part}>
        <div className={styles.partTitle}>Ports</div>
        <p className={styles.hint}>They follow from what the construct is applied to.</p>
        <PortList title="Takes" ports={ports.inputs} />
        <PortList title="Gives" ports={ports.outputs} />
      </div>
    );
  }
  return (
    <PartForm kind="set-interface" unit={place.interface(workflow)} title="Ports" trail={trail}>
      {({ value, edit, readOnly, disabled }) => {
        const ports = value.interface;
        const taken = [...ports.inputs, ...ports.outputs].map((p) => p.id);
        const change = (side: keyof Interface, list: Port[]) => edit({ interface: { ...ports, [side]: list } });
        return (
          <>
            <datalist id={types}>
              {TYPES.map((t) => (
                <option key={t} value={t} />
              ))}
            </datalist>
            {(["inputs", "outputs"] as const).map((side) => (
              <div key={side} role="group" aria-label={side === "inputs" ? "Inputs" : "Outputs"}>
                <div className={styles.subTitle}>{side === "inputs" ? "Inputs" : "Outputs"}</div>
                {ports[side].map((port, i) => (
                  <PortRow key={port.id} port={port} types={types} readOnly={readOnly} disabled={disabled} isFirst={i === 0} onChange={(p) => change(side, ports[side].with(i, p))} onRemove={() => change(side, ports[side].toSpliced(i, 1))} onUp={() => change(side, ports[side].toSpliced(i - 1, 2, port, ports[side][i - 1]!))} />
                ))}
                <NewPort side={side} types={types} taken={taken} disabled={disabled} onAdd={(p) => change(side, [...ports[side], p])} />
              </div>
            ))}
          </>
        );
      }}
    </PartForm>
  );
}

function PortList({ title, ports }: { title: string; ports: Port[] }) {
  return (
    <p>
      {title}:{" "}
      {ports.length === 0
        ? "nothing"
        : ports.map((p) => (
            <span key={p.id} className={styles.portWord}>
              {p.name} <span className={styles.portType}>{p.type}</span>
            </span>
          ))}
    </p>
  );
}

interface RowProps {
  port: Port;
  types: string;
  readOnly: boolean;
  disabled: boolean;
  isFirst: boolean;
  onChange: (port: Port) => void;
  onRemove: () => void;
  onUp: () => void;
}

function PortRow({ port, types, readOnly, disabled, isFirst, onChange, onRemove, onUp }: RowProps) {
  return (
    <div className={styles.portRow}>
      <code title="What scripts and links call it">{port.id}</code>
      <input aria-label={`Name of ${port.id}`} value={port.name} readOnly={readOnly} onChange={(e) => onChange({ ...port, name: e.target.value })} />
      <input aria-label={`Type of ${port.id}`} list={types} value={port.type} readOnly={readOnly} aria-invalid={!isType(port.type)} onChange={(e) => onChange({ ...port, type: e.target.value })} />
      <Button look="quiet" aria-label={`Move ${port.id} up`} disabled={disabled || isFirst} onClick={onUp}>
        ↑
      </Button>
      <Button look="quiet" aria-label={`Remove ${port.id}`} disabled={disabled} onClick={onRemove}>
        ✕
      </Button>
    </div>
  );
}

function NewPort({ side, types, taken, disabled, onAdd }: { side: keyof Interface; types: string; taken: string[]; disabled: boolean; onAdd: (port: Port) => void }) {
  const [id, setId] = useState("");
  const [type, setType] = useState("file");
  const input = useRef<HTMLInputElement>(null);
  const word = side === "inputs" ? "input" : "output";
  const problem = id === "" ? null : !isName(id) ? "Use letters, digits, _ and -." : taken.includes(id) ? "There is such a port already." : !isType(type) ? "This is no type." : null;
  const add = () => {
    if (id === "" || problem) return;
    onAdd({ id, name: id, type });
    setId("");
    // The button cannot be pressed twice, and whoever adds one port often adds another.
    input.current?.focus();
  };
  return (
    <div className={styles.newPort}>
      <input
        ref={input}
        aria-label={`New ${word}`}
        placeholder={`new ${word}`}
        value={id}
        disabled={disabled}
        onChange={(e) => setId(e.target.value)}
        onKeyDown={(e) => e.key === "Enter" && !e.ctrlKey && (e.preventDefault(), add())}
      />
      <input aria-label={`Type of the new ${word}`} list={types} value={type} disabled={disabled} onChange={(e) => setType(e.target.value)} />
      <Button disabled={disabled || id === "" || problem !== null} onClick={add} aria-label={`Add ${word}`}>
        Add
      </Button>
      {problem && <span className={styles.hint}>{problem}</span>}
    </div>
  );
}
