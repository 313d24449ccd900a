import type { ChainState } from "../api/types";
import { count } from "../ui/format";
import { Button } from "../ui/parts";
import { CHAIN_STATES } from "../ui/states";
import type { Chains } from "./useChains";
import styles from "./runs.module.css";

/** Which chains are listed. */
export function ChainFilters({ chains }: { chains: Chains }) {
  return (
    <div className={styles.filters} role="search" aria-label="Find chains">
      <label className={styles.search}>
        <span className="visually-hidden">Task, or number of a chain</span>
        <input type="search" placeholder="Task, or number of a chain" value={chains.words} onChange={(e) => chains.setWords(e.target.value)} />
      </label>
      <label>
        State{" "}
        <select value={chains.state ?? ""} onChange={(e) => chains.setState((e.target.value || null) as ChainState | null)}>
          <option value="">any</option>
          {CHAIN_STATES.map((s) => (
            <option key={s}>{s}</option>
          ))}
        </select>
      </label>
    </div>
  );
}

export function ChainPages({ chains }: { chains: Chains }) {
  const { next, previous, hidden } = chains;
  if (hidden > 0) return <p className="soft">{count(hidden, "more", "more")} found. More letters find fewer.</p>;
  if (!next && !previous) return null;
  return (
    <nav className={styles.pages} aria-label="Pages of chains">
      <Button disabled={!previous} onClick={() => previous?.()}>
        Previous
      </Button>
      <Button disabled={!next} onClick={() => next?.()}>
        Next
      </Button>
    </nav>
  );
}
