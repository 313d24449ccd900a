import { useQuery } from "../api/query";
import type { ChainView } from "../api/types";
import { go, Link, usePlace } from "../app/router";
import { wholeNumber } from "../ui/format";
import { Empty, ProblemNote, StateBadge } from "../ui/parts";
import { ChainFilters, ChainPages } from "./ChainFilters";
import { ChainLog, type LogChoice } from "./ChainLog";
import { useChains } from "./useChains";
import styles from "./runs.module.css";

/** The chains of a run, and the log of the one that was chosen. */
export function LogsTab({ run }: { run: number }) {
  const chains = useChains(run);
  const { query } = usePlace();
  const chain = wholeNumber(query.get("log")) ?? chains.rows?.[0]?.chain ?? null;
  const choice: LogChoice = {
    task: wholeNumber(query.get("task")) ?? 0,
    attempt: wholeNumber(query.get("attempt")) || null,
    stream: query.get("stream") === "err" ? "err" : "out",
  };

  function choose({ task, attempt, stream }: LogChoice) {
    const parameters = new URLSearchParams({ log: String(chain), task: String(task), stream });
    if (attempt !== null) parameters.set("attempt", String(attempt));
    go(`/runs/${run}/logs?${parameters}`, { replace: true });
  }

  return (
    <div className={styles.logsTab}>
      <div className={styles.logList}>
        <ChainFilters chains={chains} />
        <ProblemNote problem={chains.problem} />
        <ul className={styles.picker} aria-label="Chains with logs">
          {chains.rows?.map((row) => (
            <li key={row.chain}>
              <Link to={`/runs/${run}/logs?log=${row.chain}`} className={styles.pick} aria-current={row.chain === chain ? "true" : undefined}>
                <span className={styles.pickName}>
                  <span className="soft">{row.chain}</span> {row.tasks.join(" → ")}
                </span>
                <StateBadge state={row.state} />
              </Link>
            </li>
          ))}
        </ul>
        {chains.rows?.length === 0 && <Empty>No such chains.</Empty>}
        <ChainPages chains={chains} />
      </div>
      <div className={styles.logMain}>
        {chain !== null && <Chosen key={chain} run={run} chain={chain} choice={choice} onChoose={choose} />}
      </div>
    </div>
  );
}

function Chosen({ run, chain, choice, onChoose }: { run: number; chain: number; choice: LogChoice; onChoose: (choice: LogChoice) => void }) {
  const { data, problem } = useQuery<ChainView>(`/runs/${run}/chains/${chain}`, 2000);
  if (!data) return problem ? <ProblemNote problem={problem} /> : <Empty>Loading …</Empty>;
  return <ChainLog run={run} chain={data} choice={choice} onChoose={onChoose} />;
}
