import { useQuery } from "../api/query";
import type { RunView } from "../api/types";
import { ago, count } from "../ui/format";
import { ProblemNote } from "../ui/parts";
import { isOver, stateWords } from "../ui/states";
import { Field } from "./Field";
import type { ChoiceProps } from "./WorkflowChoice";
import styles from "./simulate.module.css";

/** A run of this server that has ended: what if it had had more nodes? */
export function RunChoice({ choices, change }: ChoiceProps) {
  const { data, problem } = useQuery<RunView[]>("/runs?limit=200");
  const ended = (data ?? []).filter((run) => isOver(run.state));
  const isListed = ended.some((run) => String(run.run) === choices.run);
  return (
    <>
      <ProblemNote problem={problem} />
      <Field name="Run">
        <select value={choices.run} onChange={(e) => change({ run: e.target.value })}>
          {choices.run === "" && <option value="">Choose a run …</option>}
          {choices.run !== "" && !isListed && <option value={choices.run}>{choices.run}</option>}
          {ended.map((run) => (
            <option key={run.run} value={run.run}>
              {run.run} {run.name}, {count(run.tasks, "task")}, {stateWords(run.state)}
              {run.ended === null ? "" : ` ${ago(run.ended)}`}
            </option>
          ))}
        </select>
      </Field>
      <p className={styles.hint}>
        {data && ended.length === 0
          ? "No run of this server has ended yet."
          : "It is simulated with every task and file it had, and with the durations that were measured."}
      </p>
    </>
  );
}
