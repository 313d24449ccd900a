import type { FailureView } from "../api/types";

/** Failures that say the same. */
export interface FailureGroup {
  message: string;
  help: string | null;
  failures: FailureView[];
}

/** Puts failures together that have the same message, those that occur most often first. */
export function grouped(failures: FailureView[]): FailureGroup[] {
  const groups = new Map<string, FailureGroup>();
  for (const failure of failures) {
    const { message, help } = failure.failure;
    const key = JSON.stringify([message, help]);
    const group = groups.get(key) ?? { message, help, failures: [] };
    group.failures.push(failure);
    groups.set(key, group);
  }
  return [...groups.values()].sort((a, b) => b.failures.length - a.failures.length);
}

/** Where the log of a failed attempt is shown. */
export function logPlace(run: number, { chain, attempt, failure }: FailureView): string {
  // The name of the file says which task of the chain it was: chain-attempt-task.
  const task = /\d+-\d+-(\d+)\.(?:out|err)$/.exec(failure.log ?? "")?.[1] ?? "0";
  return `/runs/${run}/logs?${new URLSearchParams({ log: String(chain), task, attempt: String(attempt), stream: "err" })}`;
}
