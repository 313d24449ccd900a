import { useEffect, useMemo, useRef, useState } from "react";
import type { ChainState } from "../api/types";
import { Link } from "../app/router";
import { count, duration, number } from "../ui/format";
import { Button, Progress, StateBadge } from "../ui/parts";
import { CHAIN_STATES } from "../ui/states";
import type { BoardView } from "./board";
import { summary } from "./boardChains";
import { BoardChainList } from "./BoardChainList";
import type { GraphModel } from "./graphModel";
import { listed, waitsFor } from "./graphWords";
import styles from "./board.module.css";

/** A step: how it stands, how long it takes, and all of its chains. */
export function GraphStepPanel({ run, model, node, view, steps, hidden, entered, onChain, onClose }: {
  run: number;
  model: GraphModel;
  node: number;
  view: BoardView;
  steps: Int32Array;
  hidden: boolean;
  /** The focus is to go here; another object each time. */
  entered: object | null;
  onChain: (chain: number) => void;
  onClose: () => void;
}) {
  const [state, setState] = useState<ChainState | null>(null);
  const panel = useRef<HTMLElement>(null);
  const before = useRef<Element>(null);
  useEffect(() => {
    if (!entered) return;
    const was = document.activeElement;
    // Who comes back from a chain does not come from anywhere else.
    if (was !== document.body && !panel.current?.contains(was)) before.current = was;
    panel.current?.focus({ preventScroll: true });
  }, [entered]);
  const leave = () => {
    if (before.current instanceof HTMLElement) before.current.focus({ preventScroll: true });
    onClose();
  };
  const { name, service, over, conditional } = model.view.nodes[node]!;
  const board = view.state;
  const step = steps[node]!;
  // The board changes in place; the view is another object each time it does.
  const found = useMemo(() => (view.state && step >= 0 ? summary(view.state, step, state) : null), [view, step, state]);
  const total = board && step >= 0 ? board.totalOf(step) : 0;
  const counts = board && total > 0 ? board.countsOf(step) : null;

  return (
    <aside
      ref={panel}
      className={styles.panel}
      aria-label={`Step ${name}`}
      tabIndex={-1}
      hidden={hidden}
      onKeyDown={(event) => event.key === "Escape" && leave()}
    >
      <div className={styles.panelTitle}>
        <h2>{name}</h2>
        <Button look="quiet" aria-label="Close the step" onClick={leave}>
          ✕
        </Button>
      </div>
      <p className={styles.facts}>
        {service && <code>{service}</code>}
        {over && <span>for each of {over}</span>}
        {conditional && <span>may be skipped</span>}
        {total > 0 && <Link to={`/runs/${run}/timeline?step=${encodeURIComponent(name)}`}>in the timeline</Link>}
      </p>
      {board && total === 0 && <p>{waitsFor(model, node, board, steps)}</p>}
      {board && counts && found && (
        <>
          <Progress counts={counts} />
          <ul className={styles.counts} aria-label="Chains by state">
            {CHAIN_STATES.filter((each) => counts[each] > 0).map((each) => (
              <li key={each}>
                <button type="button" className={styles.countButton} aria-pressed={state === each} onClick={() => setState(state === each ? null : each)}>
                  <StateBadge state={each} /> {number(counts[each])}
                </button>
              </li>
            ))}
          </ul>
          {found.ended > 0 && (
            <p>
              {found.ended === 1 ? (
                <>took {duration(found.longest)}</>
              ) : (
                <>
                  takes {duration(found.mean)} on average, {duration(found.longest)} at the longest
                </>
              )}
            </p>
          )}
          <Together model={model} view={view} step={step} />
          <div className={styles.listHead}>
            <h3>{count(found.rows.length, "chain")}</h3>
            <label>
              State{" "}
              <select value={state ?? ""} onChange={(e) => setState((e.target.value || null) as ChainState | null)}>
                <option value="">any, failures first</option>
                {CHAIN_STATES.map((each) => (
                  <option key={each}>{each}</option>
                ))}
              </select>
            </label>
          </div>
          <BoardChainList view={view} rows={found.rows} label={`Chains of ${name}`} onOpen={onChain} />
        </>
      )}
    </aside>
  );
}

/** Steps that are executed in one chain share its time. */
function Together({ model, view, step }: { model: GraphModel; view: BoardView; step: number }) {
  const board = view.state!;
  const others = new Set<string>();
  for (const kind of board.kinds) {
    if (kind.length > 1 && kind.includes(step)) for (const each of kind) if (each !== step) others.add(board.steps[each]!);
  }
  if (others.size === 0) return null;
  const names = [...others].filter((name) => model.find(name) >= 0);
  return <p className="soft">Some of its chains also execute {listed(names.slice(0, 8))}; times are those of whole chains.</p>;
}
