import { ask } from "../api/client";
import { go } from "../app/router";

/** Runs a composition as it is now, or a version of it, and goes to the run. */
export async function runComposition(id: string, version?: string): Promise<void> {
  const query = new URLSearchParams({ form: "yaml", ...(version === undefined ? {} : { version }) });
  const text = await (await ask(`/compositions/${encodeURIComponent(id)}?${query}`)).text();
  const response = await ask("/runs", { method: "POST", body: text });
  const { run } = (await response.json()) as { run: number };
  go(`/runs/${run}`);
}
