import { Fragment, useMemo, type ReactNode } from "react";
import { useQuery } from "../api/query";
import type { CriticalPath } from "../api/types";
import { count, duration } from "../ui/format";
import { Card, classes, Dot, Empty, ProblemNote } from "../ui/parts";
import { useBoard } from "./board";
import { ChainPanel } from "./ChainPanel";
import { chooseChain, useChosenChain } from "./chosenChain";
import { CriticalPathRows } from "./CriticalPathRows";
import { advice, coloursOf, percent, pieces, shares, type PathShares } from "./criticalPathWords";
import boardStyles from "./board.module.css";
import styles from "./criticalPath.module.css";

/** So many steps have an entry of their own in the legend. */
const NAMED = 8;

/** What the end of a run waited for. */
export function CriticalPathTab({ run }: { run: number }) {
  const { state } = useBoard(run);
  const live = state !== null && !state.over;
  const { data, problem } = useQuery<CriticalPath>(`/runs/${run}/critical-path`, live ? 5000 : undefined);
  const chain = useChosenChain();
  if (!data) return problem ? <ProblemNote problem={problem} /> : <Empty>Loading …</Empty>;
  if (data.links.length === 0) return <Empty>Nothing has been executed yet.</Empty>;
  return (
    <div className={boardStyles.tab}>
      <ProblemNote problem={problem} />
      <div className={boardStyles.split}>
        <div className={classes(boardStyles.picture, boardStyles.tab)}>
          <Summary path={data} live={live} onOpen={chooseChain} />
          <CriticalPathRows path={data} chosen={chain} onOpen={chooseChain} />
        </div>
        {chain !== null && <ChainPanel run={run} chain={chain} onClose={() => chooseChain(null)} />}
      </div>
    </div>
  );
}

/** The whole path in a few words and a bar. */
function Summary({ path, live, onOpen }: { path: CriticalPath; live: boolean; onOpen: (chain: number) => void }) {
  const spent = useMemo(() => shares(path), [path]);
  const colourOf = useMemo(() => coloursOf(spent), [spent]);
  return (
    <Card title={`${duration(path.total)} ${live ? "so far" : "from the beginning to the end"}`}>
      <p className={styles.words}>
        <SpentWords spent={spent} total={path.total} />
      </p>
      <Bar path={path} spent={spent} onOpen={onOpen} />
      <ul className={styles.legend} aria-label="What the time was spent on">
        {spent.steps.slice(0, NAMED).map((step) => (
          <li key={step.name}>
            <Dot colour={colourOf(step.name)} /> {step.name} <span className="soft">{percent(step.millis, path.total)}</span>
          </li>
        ))}
        {spent.steps.length > NAMED && <li className="soft">and {count(spent.steps.length - NAMED, "more step")}</li>}
        {spent.waiting > 0 && (
          <li>
            <span className={styles.waitingDot} aria-hidden="true" /> waiting for agents <span className="soft">{percent(spent.waiting, path.total)}</span>
          </li>
        )}
      </ul>
      <ul className={styles.advice} aria-label="What would shorten the run">
        {advice(spent, path.total).map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
    </Card>
  );
}

/** What took the most comes first. */
function SpentWords({ spent, total }: { spent: PathShares; total: number }) {
  const parts: { millis: number; words: ReactNode }[] = spent.steps
    .slice(0, 1)
    .map(({ name, millis }) => ({ millis, words: <>in <em>{name}</em></> }));
  if (spent.waiting > 0) parts.push({ millis: spent.waiting, words: "waiting for agents" });
  if (spent.other > total * 0.01) parts.push({ millis: spent.other, words: "between chains" });
  parts.sort((a, b) => b.millis - a.millis);
  return (
    <>
      {parts.map(({ millis, words }, i) => (
        <Fragment key={i}>
          {i > 0 && ", "}
          {percent(millis, total)} {i === 0 && "of the time is spent "}
          {words}
        </Fragment>
      ))}
      .
    </>
  );
}

/** The time of the path as long as it is; waiting is hatched. */
function Bar({ path, spent, onOpen }: { path: CriticalPath; spent: PathShares; onOpen: (chain: number) => void }) {
  const parts = useMemo(() => pieces(path), [path]);
  const colourOf = useMemo(() => coloursOf(spent), [spent]);
  const words = `${percent(spent.running, path.total)} running, ${percent(spent.waiting, path.total)} waiting`;
  return (
    <div className={styles.bar} role="img" aria-label={`The time of the critical path: ${words}`}>
      {parts.map((part) => {
        const link = path.links[part.link];
        const name = link ? link.steps.join(" → ") || link.tasks.join(" → ") : "several short chains";
        const what = part.waiting ? `waits for ${duration(part.to - part.from)}` : `runs for ${duration(part.to - part.from)}`;
        return (
          <div
            key={part.from}
            className={part.waiting ? styles.waiting : styles.running}
            title={`${name} ${what}`}
            style={{
              left: `${(100 * part.from) / path.total}%`,
              width: `${(100 * (part.to - part.from)) / path.total}%`,
              ...(part.waiting ? {} : { background: link ? colourOf(link.steps[0] ?? name) : "var(--soft)" }),
            }}
            onClick={() => link && onOpen(link.chain)}
          />
        );
      })}
    </div>
  );
}
