import { Button } from "../ui/parts";
import { USUAL_NODES, type Wrong } from "./choices";
import { Field, Group } from "./Field";
import type { ChoiceProps } from "./WorkflowChoice";
import styles from "./simulate.module.css";

const PRESETS = [
  { name: "1 to 64", nodes: USUAL_NODES },
  { name: "1 to 1,024", nodes: "1, 4, 16, 64, 256, 1024" },
  { name: "4 only", nodes: "4" },
];

/** How many nodes, and what chance is. */
export function NodesChoice({ choices, change, wrong }: ChoiceProps & { wrong: Wrong }) {
  const what = [wrong.nodes, wrong.seed].filter(Boolean).join(" ");
  return (
    <Group title="Nodes" wrong={what || undefined}>
      <div className={styles.nodes}>
        <Field name="Numbers of nodes">
          <input value={choices.nodes} inputMode="numeric" onChange={(e) => change({ nodes: e.target.value })} />
        </Field>
        <Field name="Seed">
          <input type="number" min={0} value={choices.seed} onChange={(e) => change({ seed: e.target.value })} title="The same seed gives the same result." />
        </Field>
      </div>
      <div className={styles.presets} role="group" aria-label="Presets">
        {PRESETS.map((preset) => (
          <Button key={preset.name} onClick={() => change({ nodes: preset.nodes })}>
            {preset.name}
          </Button>
        ))}
      </div>
    </Group>
  );
}
