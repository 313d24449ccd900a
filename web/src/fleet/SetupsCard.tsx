import type { FleetView } from "../api/types";
import { count } from "../ui/format";
import { Card, Chips, Empty } from "../ui/parts";
import { resourceWords } from "./load";
import { Words } from "../ui/Words";
import styles from "./fleet.module.css";

/** What machines can be made from, how many there are, and why. */
export function SetupsCard({ fleet }: { fleet: FleetView }) {
  return (
    <Card title="Setups and pools" className={styles.tableCard}>
      {fleet.setups.length === 0 ? (
        <Empty>
          <p>No machines are made on demand: agents are those that somebody starts.</p>
          <p>
            <code>fleet.setups</code> in the settings of an instance with the role <code>fleet</code> says what machines can be made from.
          </p>
        </Empty>
      ) : (
        <ul className={styles.setups} aria-label="Setups">
          {fleet.setups.map((setup) => (
            <Setup key={setup.id} setup={setup} />
          ))}
        </ul>
      )}
      {fleet.pools.length > 0 && (
        <>
          <h3 className={styles.subtitle}>Pools</h3>
          <ul className={styles.pools} aria-label="Pools">
            {fleet.pools.map((pool, i) => (
              <li key={i}>
                {count(pool.machines, "machine")} of {limits(pool.min, pool.max)} that {pool.machines === 1 ? "offers" : "offer"}{" "}
                <Chips words={pool.capabilities} none="anything" />
              </li>
            ))}
          </ul>
        </>
      )}
    </Card>
  );
}

function Setup({ setup }: { setup: FleetView["setups"][number] }) {
  const part = (n: number) => `${(100 * n) / Math.max(1, setup.max)}%`;
  const words = `${setup.running} running, ${setup.creating} being created, of ${limits(setup.min, setup.max)}`;
  return (
    <li>
      <div className={styles.setupHead}>
        <h3>{setup.id}</h3>
        <Chips words={setup.provides} none="no capabilities" />
        <span className="soft">
          {resourceWords(setup.resources).join(", ")} · made by {setup.provider}
        </span>
      </div>
      <div className={styles.setupBar}>
        <div className={styles.bar} role="img" aria-label={words}>
          <div className={styles.fill} style={{ width: part(setup.running) }} />
          <div className={styles.creating} style={{ width: part(setup.creating) }} />
        </div>
        <span>{words}</span>
      </div>
      {setup.why.length > 0 && (
        <ul className={styles.reasons} aria-label={`Why ${setup.id} is used or not`}>
          {setup.why.map((reason, i) => (
            <li key={i}>
              <Words text={reason} />
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

function limits(min: number, max: number | null): string {
  const most = max === null ? "any number" : `at most ${max}`;
  return min > 0 ? `${most} (at least ${min} are kept)` : most;
}
