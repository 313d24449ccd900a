import { useQuery } from "../api/query";
import type { ChainView, Mishap, Why } from "../api/types";
import { duration, moment } from "../ui/format";
import { Chips, StateBadge } from "../ui/parts";
import { Words } from "../ui/Words";
import { Code } from "./Code";
import { Elapsed } from "./Elapsed";
import { hasChainEnded } from "../ui/states";
import styles from "./runs.module.css";

/** How a chain stands, why, what became of its attempts, and what it executes. */
export function ChainAbout({ run, chain }: { run: number; chain: ChainView }) {
  const { data: why } = useQuery<Why>(`/runs/${run}/chains/${chain.chain}/why`, 2000);
  return (
    <div className={styles.stackTight}>
      {why && why.reasons.length > 0 && (
        <section aria-label="Why">
          {why.reasons.map((reason, i) => (
            <p key={i}>
              <Words text={reason} />
            </p>
          ))}
        </section>
      )}
      <dl className={styles.facts}>
        <dt>Requires</dt>
        <dd>
          <Chips words={chain.capabilities} none="nothing special" />
        </dd>
        <dt>Agent</dt>
        <dd>{chain.agent ? <code>{chain.agent}</code> : <span className="soft">none yet</span>}</dd>
        <dt>Priority</dt>
        <dd>{chain.priority}</dd>
      </dl>
      <Attempts chain={chain} />
      <History chain={chain} />
      <Tasks chain={chain} />
    </div>
  );
}

function Attempts({ chain }: { chain: ChainView }) {
  const { mishaps } = chain;
  if (chain.attempt === 0 && mishaps.length === 0) return null;
  // The newest attempt may be a mishap itself.
  const isCounted = mishaps.some((m) => m.attempt === chain.attempt && !m.lost);
  return (
    <section>
      <h3>Attempts</h3>
      <ol className={styles.attempts} aria-label="Attempts">
        {mishaps.map((mishap, i) => (
          <MishapItem key={i} mishap={mishap} />
        ))}
        {!isCounted && chain.started !== null && (
          <li>
            <strong>Attempt {chain.attempt}</strong> <StateBadge state={chain.state} />{" "}
            <span className="soft">
              {moment(chain.started)}, <Elapsed from={chain.started} to={chain.ended} isOver={hasChainEnded(chain.state)} />
              {chain.agent && ` on ${chain.agent}`}
            </span>
          </li>
        )}
      </ol>
    </section>
  );
}

function MishapItem({ mishap }: { mishap: Mishap }) {
  return (
    <li>
      <strong>Attempt {mishap.attempt}</strong> {mishap.lost ? "The agent was lost." : <StateBadge state="failed" />}{" "}
      <span className="soft">
        {moment(mishap.started)}, {duration(Math.max(0, mishap.ended - mishap.started))}
        {mishap.agent && ` on ${mishap.agent}`}
      </span>
      {mishap.message && <div className={styles.message}>{mishap.message}</div>}
    </li>
  );
}

/** What it was at when, and for how long. */
function History({ chain }: { chain: ChainView }) {
  const { history } = chain;
  if (history.length === 0) return null;
  return (
    <section>
      <h3>History</h3>
      <table className={styles.compact} aria-label="History">
        <tbody>
          {history.map((m, i) => {
            const next = history[i + 1];
            return (
              <tr key={i}>
                <td>{m.state}</td>
                <td className={styles.nowrap}>{moment(m.at)}</td>
                <td className="number soft">{next ? duration(Math.max(0, next.at - m.at)) : ""}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

function Tasks({ chain }: { chain: ChainView }) {
  return (
    <section>
      <h3>Tasks</h3>
      <ol className={styles.tasks} aria-label="Tasks">
        {chain.files.map((task, i) => (
          <li key={i}>
            <div>
              <code>{task.task}</code>{" "}
              <span className="soft">
                {[task.service, task.millis !== null && duration(task.millis), task.cached && "from the cache"].filter(Boolean).join(", ")}
              </span>
            </div>
            <Code label={`Command of ${task.task}`}>{task.command}</Code>
          </li>
        ))}
      </ol>
    </section>
  );
}
