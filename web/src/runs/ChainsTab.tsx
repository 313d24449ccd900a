import { Link } from "../app/router";
import { moment } from "../ui/format";
import { Chips, Empty, ProblemNote, StateBadge } from "../ui/parts";
import { ChainFilters, ChainPages } from "./ChainFilters";
import { useChosenChain } from "./chosenChain";
import { Elapsed } from "./Elapsed";
import { hasChainEnded } from "../ui/states";
import { useChains, type ChainRow } from "./useChains";
import styles from "./runs.module.css";

/** The chains of a run, in a table. */
export function ChainsTab({ run }: { run: number }) {
  const chains = useChains(run);
  const chosen = useChosenChain();
  return (
    <div className={styles.stack}>
      <ChainFilters chains={chains} />
      <ProblemNote problem={chains.problem} />
      {!chains.rows && !chains.problem && <Empty>Loading …</Empty>}
      {chains.rows?.length === 0 && <Empty>No such chains.</Empty>}
      {chains.rows && chains.rows.length > 0 && (
        <div className={styles.tableBox}>
          <table className={styles.chainTable} aria-label="Chains">
            <thead>
              <tr>
                <th className="number">Chain</th>
                <th>Tasks</th>
                <th>State</th>
                <th className="number">Attempt</th>
                <th>Agent</th>
                <th>Started</th>
                <th className="number">Duration</th>
                <th>Requires</th>
              </tr>
            </thead>
            <tbody>
              {chains.rows.map((row) => (
                <Row key={row.chain} run={run} row={row} isChosen={row.chain === chosen} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      <ChainPages chains={chains} />
    </div>
  );
}

function Row({ run, row, isChosen }: { run: number; row: ChainRow; isChosen: boolean }) {
  return (
    <tr className={isChosen ? styles.chosen : undefined}>
      <td className="number soft">{row.chain}</td>
      <td className={styles.nameCell}>
        <Link to={`/runs/${run}/chains?chain=${row.chain}`} aria-current={isChosen ? "true" : undefined}>
          {row.tasks.join(" → ") || `chain ${row.chain}`}
        </Link>
      </td>
      <td>
        <StateBadge state={row.state} />
      </td>
      <td className="number">{row.attempt}</td>
      <td className={styles.fileCell} title={row.agent ?? undefined}>
        {row.agent ?? "–"}
      </td>
      <td className={styles.nowrap}>{row.started === null ? "–" : moment(row.started)}</td>
      <td className="number">
        <Elapsed from={row.started} to={row.ended} isOver={hasChainEnded(row.state)} />
      </td>
      <td>
        <Chips words={row.capabilities} none="–" />
      </td>
    </tr>
  );
}
