import { useId } from "react";
import type { ChainState } from "../api/types";
import { Empty } from "../ui/parts";
import { LogView } from "./logs/LogView";
import { hasChainEnded } from "../ui/states";
import styles from "./runs.module.css";

/** Which log of a chain: the task counted from 0, the attempt (the newest if none is named), and the stream. */
export interface LogChoice {
  task: number;
  attempt: number | null;
  stream: "out" | "err";
}

interface Props {
  run: number;
  chain: { chain: number; state: ChainState; attempt: number; tasks: string[] };
  choice: LogChoice;
  onChoose: (choice: LogChoice) => void;
}

/** What a chain has written: a choice of tasks, attempts and streams, and the log. */
export function ChainLog({ run, chain, choice, onChoose }: Props) {
  const id = useId();
  const attempt = choice.attempt ?? chain.attempt;
  const task = Math.min(choice.task, Math.max(0, chain.tasks.length - 1));
  const name = chain.tasks[task] ?? `task ${task}`;
  const attempts = Array.from({ length: Math.max(attempt, chain.attempt) }, (_, i) => i + 1);
  const live = !hasChainEnded(chain.state) && attempt === chain.attempt;
  const path = `/runs/${run}/chains/${chain.chain}/log?task=${task}&attempt=${attempt}&stream=${choice.stream}`;
  return (
    <>
      <div className={styles.logChoice}>
        <label htmlFor={`${id}-task`}>Task</label>
        <select id={`${id}-task`} value={task} onChange={(e) => onChoose({ ...choice, task: Number(e.target.value) })}>
          {chain.tasks.map((t, i) => (
            <option key={i} value={i}>
              {t}
            </option>
          ))}
        </select>
        <label htmlFor={`${id}-attempt`}>Attempt</label>
        <select id={`${id}-attempt`} value={attempt} onChange={(e) => onChoose({ ...choice, attempt: Number(e.target.value) })}>
          {attempts.map((a) => (
            <option key={a} value={a}>
              {a}
            </option>
          ))}
        </select>
        <fieldset className={styles.streams}>
          <legend className="visually-hidden">Stream</legend>
          {(["out", "err"] as const).map((stream) => (
            <label key={stream}>
              <input
                type="radio"
                name={`${id}-stream`}
                checked={choice.stream === stream}
                onChange={() => onChoose({ ...choice, stream })}
              />
              {stream === "out" ? "output" : "errors"}
            </label>
          ))}
        </fieldset>
      </div>
      {attempt === 0 ? (
        <Empty>It has not been started yet.</Empty>
      ) : (
        <LogView
          key={path}
          path={path}
          label={`Log of ${name}, attempt ${attempt}, ${choice.stream === "out" ? "output" : "errors"}`}
          file={`${chain.chain}-${attempt}-${task}.${choice.stream}`}
          live={live}
        />
      )}
    </>
  );
}
