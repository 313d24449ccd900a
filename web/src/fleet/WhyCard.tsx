import { useEffect, useState, type FormEvent } from "react";
import { useQuery } from "../api/query";
import type { Why } from "../api/types";
import { Link, setParameter, usePlace } from "../app/router";
import { wholeNumber } from "../ui/format";
import { Button, Card, ProblemNote } from "../ui/parts";
import { Words } from "../ui/Words";
import styles from "./fleet.module.css";

/** Why a single chain waits, in words. The question is in the address, so that others can ask it too. */
export function WhyCard() {
  const { query } = usePlace();
  const asked = { run: wholeNumber(query.get("run")), chain: wholeNumber(query.get("chain")) };
  const isAsked = asked.run !== null && asked.chain !== null;
  const [run, setRun] = useState(query.get("run") ?? "");
  const [chain, setChain] = useState(query.get("chain") ?? "");
  const why = useQuery<Why>(isAsked ? `/runs/${asked.run}/chains/${asked.chain}/why` : null, 2000);

  useEffect(() => {
    if (asked.run !== null) setRun(String(asked.run));
    if (asked.chain !== null) setChain(String(asked.chain));
  }, [asked.run, asked.chain]);

  function ask(event: FormEvent) {
    event.preventDefault();
    setParameter("run", run);
    setParameter("chain", chain);
    why.again();
  }

  function clear() {
    setParameter("run", null);
    setParameter("chain", null);
    setRun("");
    setChain("");
  }

  return (
    <Card title="Why is this chain waiting?">
      <form className={styles.why} onSubmit={ask} aria-label="Why is this chain waiting?">
        <label>
          Run
          <input type="number" min={0} required value={run} onChange={(e) => setRun(e.target.value)} />
        </label>
        <label>
          Chain
          <input type="number" min={0} required value={chain} onChange={(e) => setChain(e.target.value)} />
        </label>
        <Button type="submit" look="primary">
          Ask
        </Button>
        {isAsked && <Button onClick={clear}>Clear</Button>}
      </form>
      <div aria-live="polite">
        {isAsked && (
          <>
            <p>
              <Link to={`/runs/${asked.run}?chain=${asked.chain}`}>
                Chain {asked.chain} of run {asked.run}
              </Link>
            </p>
            <ProblemNote problem={why.problem} />
            {why.data && (
              <ul className={styles.reasons} aria-label="Reasons">
                {why.data.reasons.map((reason, i) => (
                  <li key={i}>
                    <Words text={reason} />
                  </li>
                ))}
                {why.data.reasons.length === 0 && <li className="soft">Nothing is known to hold it back.</li>}
              </ul>
            )}
          </>
        )}
        {!isAsked && <p className="soft">Its number is shown wherever chains are listed, and in the panel that opens when one is selected.</p>}
      </div>
    </Card>
  );
}
