import { Link } from "../app/router";
import { ago, count, lasting, moment } from "../ui/format";
import { Button, Chips, classes } from "../ui/parts";
import { Bar } from "./Bar";
import { isSilent, resourceWords, type AgentChain, type LoadedAgent } from "./load";
import { Warn } from "./Warn";
import styles from "./fleet.module.css";

/** So many chains are named; the others are counted. */
const NAMED = 3;

export function AgentRow({ loaded, now, onDismiss }: { loaded: LoadedAgent; now: number; onDismiss?: (agent: string) => void }) {
  const { agent, uses } = loaded;
  const silent = isSilent(agent, now);
  return (
    <tr>
      <th scope="row" className={styles.name}>
        <span className={styles.id}>{agent.id}</span>
        <span className={styles.chips}>
          <Chips words={agent.capabilities} none="no capabilities" />
        </span>
      </th>
      <td className={styles.load}>
        {uses.map((use) => (
          <Bar key={use.name} use={use} />
        ))}
      </td>
      <td className={styles.queue}>
        <Queue loaded={loaded} now={now} />
      </td>
      <td className={styles.seen}>
        <span title={`Last heard of ${moment(agent.seen)}; joined ${moment(agent.joined)}`}>{ago(agent.seen, now)}</span>
        {silent && (
          <span className={styles.line}>
            <Warn>silent</Warn>
          </span>
        )}
        <span className={classes("soft", styles.line)}>joined {ago(agent.joined, now)}</span>
      </td>
      <td className={styles.scheduler}>{agent.scheduler ?? <Warn>none yet</Warn>}</td>
      {onDismiss && (
        <td className={styles.action}>
          <Button onClick={() => onDismiss(agent.id)} aria-label={`Dismiss ${agent.id}`}>
            Dismiss
          </Button>
        </td>
      )}
    </tr>
  );
}

function Queue({ loaded, now }: { loaded: LoadedAgent; now: number }) {
  const { agent, running, held } = loaded;
  if (agent.count === 0) return <span className="soft">nothing to do</span>;
  const shown = agent.chains.slice(0, NAMED);
  const more = agent.count - shown.length;
  return (
    <>
      <div>
        {running} running{held > 0 && `, ${held} held in advance`}
      </div>
      <ul className={styles.tasks}>
        {shown.map((chain, i) => (
          <li key={`${chain.run}.${chain.chain}.${chain.attempt}`}>
            <ChainLink chain={chain} isHeld={i >= running} now={now} />
          </li>
        ))}
        {more > 0 && <li className="soft">and {count(more, "other")}</li>}
      </ul>
    </>
  );
}

function ChainLink({ chain, isHeld, now }: { chain: AgentChain; isHeld: boolean; now: number }) {
  const [first = `chain ${chain.chain}`, ...others] = chain.tasks;
  const needs = resourceWords(chain.resources).join(", ");
  const title = [`Chain ${chain.chain} of run ${chain.run}, attempt ${chain.attempt}`, chain.tasks.join(", "), needs].filter(Boolean).join("\n");
  const time = isHeld ? "held" : chain.since === null ? "" : `here for ${lasting(now - chain.since)}`;
  return (
    <>
      <Link to={`/runs/${chain.run}?chain=${chain.chain}`} title={title}>
        {first}
        {others.length > 0 && ` +${others.length}`}
      </Link>{" "}
      <span className="soft">
        run {chain.run}
        {time && ` · ${time}`}
      </span>
    </>
  );
}
