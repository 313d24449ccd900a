import { useMemo, useState } from "react";
import { send } from "../api/client";
import { may, useMe } from "../app/session";
import { count, number } from "../ui/format";
import { Button, Card, classes, Dialog, Empty, TableBox } from "../ui/parts";
import { attempt, tell } from "../ui/toasts";
import { pick, type Kind, type Order, type SortKey } from "./agentList";
import { AgentRow } from "./AgentRow";
import type { LoadedAgent } from "./load";
import styles from "./fleet.module.css";

/** So many rows are shown unless somebody asks for more: a thousand of them would be drawn anew every two seconds. */
const ROWS = 50;

/** Who executes chains, and how much they have to do. */
export function AgentsCard({ agents, now }: { agents: LoadedAgent[]; now: number }) {
  const [words, setWords] = useState("");
  const [kind, setKind] = useState<Kind>("all");
  const [order, setOrder] = useState<Order>({ key: "name", descending: false });
  const [rows, setRows] = useState(ROWS);
  const [leaving, setLeaving] = useState<string | null>(null);
  const mayDismiss = may(useMe(), "operator");
  const picked = useMemo(() => pick(agents, words, kind, order, now), [agents, words, kind, order, now]);

  const filter = agents.length > 0 && (
    <div className={styles.filter}>
      <input type="search" placeholder="Name or capability" aria-label="Filter agents" value={words} onChange={(e) => setWords(e.target.value)} />
      <select aria-label="Which agents" value={kind} onChange={(e) => setKind(e.target.value as Kind)}>
        <option value="all">all</option>
        <option value="busy">with chains</option>
        <option value="idle">without chains</option>
        <option value="silent">silent</option>
      </select>
    </div>
  );

  return (
    <Card title={`Agents (${number(agents.length)})`} actions={filter} className={styles.tableCard}>
      {agents.length === 0 ? (
        <Empty>
          <p>There is no agent, so nothing can be executed.</p>
          <p>
            Start one on any machine that reaches the message server and the storage:
            <br />
            <code>catena agent --set bus=nats://… --set storage=/shared/catena</code>
          </p>
          <p>
            Or let this instance execute tasks itself, with the role <code>agent</code>.
          </p>
        </Empty>
      ) : picked.length === 0 ? (
        <Empty>No agent is like that.</Empty>
      ) : (
        <TableBox label="Table of agents">
          <table className={styles.agents}>
            <thead>
              <tr>
                <Heading name="Agent" of="name" order={order} onSort={setOrder} />
                <Heading name="Load" of="load" order={order} onSort={setOrder} />
                <Heading name="Queue" of="queue" order={order} onSort={setOrder} />
                <Heading name="Seen" of="seen" order={order} onSort={setOrder} />
                <th scope="col">Scheduler</th>
                {mayDismiss && (
                  <th scope="col">
                    <span className="visually-hidden">Actions</span>
                  </th>
                )}
              </tr>
            </thead>
            <tbody>
              {picked.slice(0, rows).map((loaded) => (
                <AgentRow key={loaded.agent.id} loaded={loaded} now={now} onDismiss={mayDismiss ? setLeaving : undefined} />
              ))}
            </tbody>
          </table>
        </TableBox>
      )}
      {picked.length > rows && (
        <p>
          <Button onClick={() => setRows(rows + 200)}>Show {count(Math.min(200, picked.length - rows), "more agent")}</Button>
        </p>
      )}
      {leaving !== null && <DismissDialog agent={leaving} onClose={() => setLeaving(null)} />}
    </Card>
  );
}

function Heading({ name, of, order, onSort }: { name: string; of: SortKey; order: Order; onSort: (order: Order) => void }) {
  const isCurrent = order.key === of;
  // What is largest is what one looks for, but names begin with the first.
  const descending = isCurrent ? !order.descending : of !== "name";
  return (
    <th scope="col" aria-sort={isCurrent ? (order.descending ? "descending" : "ascending") : undefined}>
      <button type="button" className={styles.sort} onClick={() => onSort({ key: of, descending })}>
        {name}
        <span aria-hidden="true" className={classes(styles.arrow, !isCurrent && styles.unsorted)}>
          {isCurrent && order.descending ? "▾" : "▴"}
        </span>
      </button>
    </th>
  );
}

function DismissDialog({ agent, onClose }: { agent: string; onClose: () => void }) {
  const [isBusy, setBusy] = useState(false);
  async function dismiss() {
    setBusy(true);
    await attempt(async () => {
      await send("POST", `/agents/${encodeURIComponent(agent)}/shutdown`);
      tell(`Agent ${agent} ends once it has nothing to do.`);
    });
    onClose();
  }
  const buttons = (
    <>
      <Button onClick={onClose}>Keep it</Button>
      <Button look="danger" disabled={isBusy} onClick={() => void dismiss()}>
        Dismiss
      </Button>
    </>
  );
  return (
    <Dialog title={`Dismiss agent ${agent}?`} onClose={onClose} buttons={buttons}>
      <p>It takes nothing new, finishes what it executes, and ends. If it was made on demand, another one may be made when chains wait.</p>
    </Dialog>
  );
}
