import { useState } from "react";
import type { SimulateChoices } from "../api/types";
import { Field, Group } from "./Field";
import type { ChoiceProps } from "./WorkflowChoice";
import styles from "./simulate.module.css";

/** Who decides which node executes what. */
export function PolicyChoice({
  choices,
  change,
  policies,
  wrong,
  faults,
}: ChoiceProps & { policies: SimulateChoices["policies"]; wrong?: string; faults: Map<string, string> }) {
  const toggle = (id: string, isWanted: boolean) => {
    const others = choices.policies.filter((p) => p !== id);
    change({ policies: isWanted ? [...others, id] : others });
  };
  // An address may name what this server does not know; it can be taken back.
  const unknown = choices.policies.filter((id) => !policies.some((p) => p.id === id)).map((id) => ({ id, description: "not known here" }));
  const [isOpen] = useState(choices.more !== "");
  const mistakes = [...faults.values()].map((message) => ({ severity: "error" as const, message }));
  return (
    <Group title="Policies" wrong={wrong} mistakes={mistakes}>
      <div className={styles.policies}>
        {[...policies, ...unknown].map((policy) => (
          <label key={policy.id} className={styles.check} title={policy.description}>
            <input type="checkbox" checked={choices.policies.includes(policy.id)} onChange={(e) => toggle(policy.id, e.target.checked)} />
            {policy.id}
          </label>
        ))}
      </div>
      <details className={styles.details} open={isOpen}>
        <summary>What they do, and others</summary>
        <dl>
          {policies.map((policy) => (
            <div key={policy.id}>
              <dt>{policy.id}</dt>
              <dd>{policy.description}</dd>
            </div>
          ))}
        </dl>
        <Field name="Choices at every stage">
          <input value={choices.more} placeholder="catena+order:prio+replicate:none" onChange={(e) => change({ more: e.target.value })} />
        </Field>
      </details>
    </Group>
  );
}
