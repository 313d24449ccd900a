import { useId, useState, type KeyboardEvent } from "react";
import { CHAIN_STATE_CODES } from "../api/types";
import { stateToken } from "../ui/colours";
import { duration } from "../ui/format";
import { classes, Empty } from "../ui/parts";
import { useRowsInSight } from "../ui/rowsInSight";
import { SIGNS } from "../ui/states";
import { took } from "./boardChains";
import type { BoardView } from "./board";
import styles from "./board.module.css";

const ROW = 30;

/** Any number of chains, of which only those in sight are made. */
export function BoardChainList({ view, rows, label, onOpen }: {
  view: BoardView;
  /** Rows of the board. */
  rows: Int32Array;
  label: string;
  onOpen: (chain: number) => void;
}) {
  const { element, first, last, page, onScroll, reveal } = useRowsInSight<HTMLDivElement>(rows.length, ROW);
  const [current, setCurrent] = useState(0);
  const id = useId();
  const board = view.state;
  if (!board || rows.length === 0) return <Empty>There are none.</Empty>;
  const { chains } = board;
  const active = Math.min(current, rows.length - 1);

  const key = (event: KeyboardEvent) => {
    const moves: Record<string, number> = {
      ArrowDown: active + 1,
      ArrowUp: active - 1,
      PageDown: active + page,
      PageUp: active - page,
      Home: 0,
      End: rows.length - 1,
    };
    const to = Object.hasOwn(moves, event.key) ? moves[event.key] : undefined;
    if (to !== undefined) {
      const row = Math.min(Math.max(to, 0), rows.length - 1);
      setCurrent(row);
      reveal(row);
      event.preventDefault();
    } else if (event.key === "Enter" || event.key === " ") {
      onOpen(chains.chain[rows[active]!]!);
      event.preventDefault();
    }
  };

  return (
    <div
      ref={element}
      className={styles.list}
      role="listbox"
      aria-label={label}
      aria-activedescendant={active >= first && active < last ? `${id}-${active}` : undefined}
      tabIndex={0}
      onScroll={onScroll}
      onKeyDown={key}
    >
      <div style={{ height: rows.length * ROW, position: "relative" }} role="presentation">
        {Array.from({ length: last - first }, (_, n) => {
          const at = first + n;
          const row = rows[at]!;
          const chain = chains.chain[row]!;
          const state = CHAIN_STATE_CODES[chains.state[row]!]!;
          const time = took(board, row, view.now());
          const agent = board.agents[chains.agent[row]!];
          return (
            <div
              key={at}
              id={`${id}-${at}`}
              role="option"
              aria-selected={at === active}
              aria-setsize={rows.length}
              aria-posinset={at + 1}
              className={classes(styles.listRow, at === active && styles.activeRow)}
              style={{ top: at * ROW, height: ROW }}
              onClick={() => {
                setCurrent(at);
                onOpen(chain);
              }}
            >
              <span style={{ color: `var(--${stateToken(state)})` }} className={styles.mark} aria-hidden="true">
                {SIGNS[state]}
              </span>
              <span className={styles.listName}>
                chain {chain} <span className={state === "failed" ? styles.failedWord : "soft"}>{state}</span>
                {chains.attempt[row]! > 1 && <span className="soft"> attempt {chains.attempt[row]}</span>}
              </span>
              <span className="soft">{agent}</span>
              <span className={styles.listTime}>{time < 0 ? "" : duration(time)}</span>
            </div>
          );
        })}
      </div>
    </div>
  );
}
