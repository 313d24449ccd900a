import { useEffect, useState } from "react";
import { useQuery } from "../api/query";
import type { RunState, RunView } from "../api/types";
import { Link, setParameter, usePlace } from "../app/router";
import { may, useMe } from "../app/session";
import { ago, moment, wholeNumber } from "../ui/format";
import { Button, Empty, LinkButton, Page, ProblemNote, Progress, StateBadge } from "../ui/parts";
import { Elapsed } from "./Elapsed";
import { isOver, progressWords, RUN_STATES, stateWords } from "../ui/states";
import { useEvents } from "./useEvents";
import styles from "./runs.module.css";

/** So many runs are shown at a time. */
const PAGE = 50;
/** How often the list is asked for, whatever events say. */
const EVERY = 2000;
/** Who types is waited for. */
const TYPING = 300;

/** All runs, newest first. */
export function RunsPage() {
  const { query } = usePlace();
  const me = useMe();
  const words = query.get("q") ?? "";
  const state = RUN_STATES.find((s) => s === query.get("state")) ?? null;
  const page = wholeNumber(query.get("page")) ?? 0;
  const { data, problem, again } = useQuery<RunView[]>(addressOf(words, state, page), EVERY);
  useEvents("/events", again);
  const runs = state ? data?.filter((r) => r.state === state) : data;
  const isFiltered = words !== "" || state !== null;

  return (
    <Page
      title="Runs"
      actions={
        may(me, "editor") && (
          <LinkButton to="/submit" look="primary">
            Submit a workflow
          </LinkButton>
        )
      }
    >
      <div className={styles.filters} role="search" aria-label="Find runs">
        <SearchField words={words} />
        <label>
          State{" "}
          <select value={state ?? ""} onChange={(e) => choose("state", e.target.value)}>
            <option value="">any</option>
            {RUN_STATES.map((s) => (
              <option key={s} value={s}>
                {stateWords(s)}
              </option>
            ))}
          </select>
        </label>
        {isFiltered && (
          <Button look="quiet" onClick={() => (choose("state", ""), choose("q", ""))}>
            Show all
          </Button>
        )}
      </div>
      <ProblemNote problem={problem} />
      {!data && !problem && <Empty>Loading …</Empty>}
      {runs && runs.length === 0 && <Empty>{isFiltered || page > 0 ? "No such runs." : "There are no runs yet."}</Empty>}
      {runs && runs.length > 0 && <RunTable runs={runs} />}
      {words === "" && (page > 0 || (data?.length ?? 0) >= PAGE) && (
        <nav className={styles.pages} aria-label="Pages of runs">
          <Button disabled={page === 0} onClick={() => setParameter("page", page > 1 ? String(page - 1) : null)}>
            Newer
          </Button>
          <span className="soft">Page {page + 1}</span>
          <Button disabled={(data?.length ?? 0) < PAGE} onClick={() => setParameter("page", String(page + 1))}>
            Older
          </Button>
        </nav>
      )}
    </Page>
  );
}

/** Where the runs are asked for: words are searched for, everything else is a page of a list. */
function addressOf(words: string, state: RunState | null, page: number): string {
  if (words) {
    const q = state ? `${words} state:${state}` : words;
    return `/search?${new URLSearchParams({ q, limit: String(PAGE * 2) })}`;
  }
  const parameters = new URLSearchParams({ offset: String(page * PAGE), limit: String(PAGE) });
  if (state) parameters.set("state", state);
  return `/runs?${parameters}`;
}

function choose(name: string, value: string) {
  setParameter("page", null);
  setParameter(name, value || null);
}

function SearchField({ words }: { words: string }) {
  const [typed, setTyped] = useState(words);
  useEffect(() => setTyped(words), [words]);
  useEffect(() => {
    if (typed === words) return;
    const timer = setTimeout(() => choose("q", typed.trim()), TYPING);
    return () => clearTimeout(timer);
  }, [typed, words]);
  return (
    <label className={styles.search}>
      <span className="visually-hidden">Search runs</span>
      <input
        type="search"
        value={typed}
        placeholder="Search: words, name:align, state:failed, error:memory, workflow:file"
        onChange={(e) => setTyped(e.target.value)}
      />
    </label>
  );
}

function RunTable({ runs }: { runs: RunView[] }) {
  return (
    <div className={styles.tableBox}>
      <table className={styles.runTable} aria-label="Runs">
        <thead>
          <tr>
            <th className="number">Run</th>
            <th>Name</th>
            <th>State</th>
            <th>Chains</th>
            <th>Started</th>
            <th className="number">Duration</th>
            <th className="number">Priority</th>
            <th>Workflow</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <RunRow key={run.run} run={run} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function RunRow({ run }: { run: RunView }) {
  const started = run.started ?? run.created;
  return (
    <tr>
      <td className="number soft">{run.run}</td>
      <td className={styles.nameCell}>
        <Link to={`/runs/${run.run}`} className={styles.name}>
          {run.name}
        </Link>
        {run.error && <div className={styles.error}>{run.error.split("\n", 1)[0]}</div>}
      </td>
      <td>
        <StateBadge state={run.state} held={run.held} />
      </td>
      <td className={styles.progressCell}>
        <Progress counts={run.chains} />
        <span className="soft">{progressWords(run.chains)}</span>
      </td>
      <td className={styles.nowrap} title={moment(started)}>
        {run.started === null ? `submitted ${ago(run.created)}` : ago(run.started)}
      </td>
      <td className="number">
        <Elapsed from={run.started} to={run.ended} isOver={isOver(run.state)} />
      </td>
      <td className="number">{run.priority}</td>
      <td className={styles.fileCell} title={run.workflow}>
        {run.workflow}
      </td>
    </tr>
  );
}
