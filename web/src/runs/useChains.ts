import { useState } from "react";
import { useQuery } from "../api/query";
import type { ChainState, ChainView } from "../api/types";

/** A chain in a list, which does not say everything. */
export type ChainRow = Omit<ChainView, "files" | "mishaps">;

/** So many chains are shown at a time. */
const PAGE = 100;
/** So many are looked at when somebody searches for a task. */
const SEARCHED = 10_000;

export interface Chains {
  rows: ChainRow[] | undefined;
  /** How many were found that are not shown. */
  hidden: number;
  problem: ReturnType<typeof useQuery>["problem"];
  state: ChainState | null;
  setState: (state: ChainState | null) => void;
  /** A number is where the list begins; other words occur in the names of tasks. */
  words: string;
  setWords: (words: string) => void;
  next: (() => void) | null;
  previous: (() => void) | null;
}

/** The chains of a run, a page at a time. */
export function useChains(run: number): Chains {
  const [state, setState] = useState<ChainState | null>(null);
  const [words, setWords] = useState("");
  /** Where pages begin: the earlier ones, and the one that is shown. */
  const [pages, setPages] = useState<number[]>([]);
  const isNumber = /^\s*\d+\s*$/.test(words);
  const isSearch = words.trim() !== "" && !isNumber;
  const from = pages.at(-1) ?? (isNumber ? Number(words) : 0);
  const limit = isSearch ? SEARCHED : PAGE;
  const parameters = new URLSearchParams({ from: String(from), limit: String(limit) });
  if (state) parameters.set("state", state);
  // A search looks at much, so it looks less often.
  const { data, problem } = useQuery<ChainRow[]>(`/runs/${run}/chains?${parameters}`, isSearch ? 10_000 : 2000);
  const last = data?.at(-1)?.chain;
  const wanted = words.trim().toLowerCase();
  const found = isSearch ? data?.filter((c) => c.tasks.some((t) => t.toLowerCase().includes(wanted))) : data;
  return {
    rows: found?.slice(0, PAGE),
    hidden: Math.max(0, (found?.length ?? 0) - PAGE),
    problem,
    state,
    setState: (to) => (setState(to), setPages([])),
    words,
    setWords: (to) => (setWords(to), setPages([])),
    next: data && last !== undefined && data.length >= limit ? () => setPages((p) => [...p, last + 1]) : null,
    previous: pages.length > 0 ? () => setPages((p) => p.slice(0, -1)) : null,
  };
}
