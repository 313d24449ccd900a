import type { Mistake, SimulateChoices } from "../api/types";
import { Button } from "../ui/parts";
import { usualCluster, type Choices, type Source } from "./choices";
import { Field, Group } from "./Field";
import { FileChoice } from "./FileChoice";
import { RunChoice } from "./RunChoice";
import styles from "./simulate.module.css";

const SOURCES: { id: Source; name: string }[] = [
  { id: "shape", name: "Generated" },
  { id: "file", name: "A file" },
  { id: "run", name: "A run" },
];

export interface ChoiceProps {
  choices: Choices;
  change: (part: Partial<Choices>) => void;
}

/** What is executed. */
export function WorkflowChoice({
  choices,
  change,
  shapes,
  wrong,
  mistakes,
}: ChoiceProps & { shapes: SimulateChoices["shapes"]; wrong?: string; mistakes: Mistake[] }) {
  const takeFrom = (source: Source) => {
    const isUsual = choices.cluster === usualCluster(choices.source);
    change({ source, ...(isUsual ? { cluster: usualCluster(source) } : {}) });
  };
  return (
    <Group title="Workflow" wrong={wrong} mistakes={mistakes}>
      <div className={styles.sources} role="group" aria-label="Where the workflow comes from">
        {SOURCES.map((source) => (
          <Button key={source.id} aria-pressed={choices.source === source.id} onClick={() => takeFrom(source.id)}>
            {source.name}
          </Button>
        ))}
      </div>
      {choices.source === "shape" && <ShapeChoice choices={choices} change={change} shapes={shapes} />}
      {choices.source === "file" && <FileChoice choices={choices} change={change} />}
      {choices.source === "run" && <RunChoice choices={choices} change={change} />}
    </Group>
  );
}

function ShapeChoice({ choices, change, shapes }: ChoiceProps & { shapes: SimulateChoices["shapes"] }) {
  const least = shapes.find((s) => s.id === choices.shape)?.least ?? 1;
  return (
    <>
      <div className={styles.fields}>
        <Field name="Shape">
          <select value={choices.shape} onChange={(e) => change({ shape: e.target.value })}>
            {shapes.map((shape) => (
              <option key={shape.id}>{shape.id}</option>
            ))}
          </select>
        </Field>
        <Field name="Tasks">
          <input type="number" min={least} value={choices.tasks} onChange={(e) => change({ tasks: e.target.value })} />
        </Field>
        <Field name="Variant">
          <input type="number" min={0} value={choices.variant} onChange={(e) => change({ variant: e.target.value })} />
        </Field>
      </div>
      <p className={styles.hint}>
        At least {least} tasks. Runtimes and sizes are those of published workflows; another variant has other ones.
      </p>
    </>
  );
}
