import type { WaitingView } from "../api/types";
import { count } from "../ui/format";
import { Card, Chips, Empty } from "../ui/parts";
import { resourceWords } from "./load";
import { Words } from "../ui/Words";
import styles from "./fleet.module.css";

/** What waits and why, by what it requires. */
export function WaitingCard({ waiting }: { waiting: WaitingView[] }) {
  const sorted = [...waiting].sort((a, b) => b.count - a.count);
  return (
    <Card title="What waits, and why">
      {sorted.length === 0 ? (
        <Empty>Nothing waits. Every chain that could run has an agent.</Empty>
      ) : (
        <ul className={styles.waiting} aria-label="Chains that wait">
          {sorted.map((w) => (
            <li key={JSON.stringify([w.capabilities, w.resources])}>
              <div>
                <strong>{count(w.count, "chain")}</strong>{" "}
                {w.capabilities.length > 0 ? (
                  <>
                    that {w.count === 1 ? "requires" : "require"} <Chips words={w.capabilities} />
                  </>
                ) : (
                  `that ${w.count === 1 ? "requires" : "require"} no capabilities `
                )}
                {w.count === 1 ? "waits" : "wait"}: <Words text={w.reason} />.
              </div>
              <div className="soft">each takes {resourceWords(w.resources).join(", ") || "next to nothing"}</div>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}
