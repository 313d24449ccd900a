import { lazy, Suspense } from "react";
import type { Mistake, SimulateChoices } from "../api/types";
import { Button } from "../ui/parts";
import { OWN } from "./choices";
import { Field, Group } from "./Field";
import { TEMPLATES } from "./templates";
import type { ChoiceProps } from "./WorkflowChoice";
import styles from "./simulate.module.css";

const YamlEditor = lazy(() => import("../ui/YamlEditor"));

/** Where it is executed. */
export function ClusterChoice({
  choices,
  change,
  clusters,
  wrong,
  mistakes,
}: ChoiceProps & { clusters: SimulateChoices["clusters"]; wrong?: string; mistakes: Mistake[] }) {
  const chosen = clusters.find((c) => c.id === choices.cluster);
  return (
    <Group title="Cluster" wrong={wrong} mistakes={mistakes}>
      <Field name="Kind of cluster">
        <select value={choices.cluster} onChange={(e) => change({ cluster: e.target.value })}>
          {clusters.map((cluster) => (
            <option key={cluster.id}>{cluster.id}</option>
          ))}
          <option value={OWN}>described below</option>
        </select>
      </Field>
      {chosen && <p className={styles.hint}>{chosen.description}</p>}
      {choices.cluster === OWN && (
        <>
          <div className={styles.presets} role="group" aria-label="Begin with">
            <span className={styles.hint}>Begin with</span>
            {TEMPLATES.map((template) => (
              <Button key={template.id} onClick={() => change({ yaml: template.yaml })}>
                {template.name}
              </Button>
            ))}
          </div>
          <Suspense fallback={<p className={styles.hint}>Loading the editor …</p>}>
            <YamlEditor label="Description of the cluster" value={choices.yaml} onChange={(yaml) => change({ yaml })} mistakes={mistakes} />
          </Suspense>
        </>
      )}
    </Group>
  );
}
