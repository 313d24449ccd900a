import { useEffect, useMemo, useRef, useState } from "react";
import { useQuery } from "../api/query";
import type { ChainState, CriticalPath } from "../api/types";
import { setParameter, usePlace } from "../app/router";
import { useTheme } from "../app/theme";
import { Lanes } from "../canvas/Lanes";
import { token } from "../ui/colours";
import { count } from "../ui/format";
import { Button, classes, Empty, ProblemNote } from "../ui/parts";
import { save } from "../ui/save";
import { useBoard } from "./board";
import type { BoardState } from "./boardState";
import { ChainPanel } from "./ChainPanel";
import { chooseChain, useChosenChain } from "./chosenChain";
import { mishapOf, rowOf, sayBar, setName, timeline, type Timeline, type TimelineFilter } from "./timelineData";
import { trace } from "./timelineTrace";
import styles from "./board.module.css";

/** A picture that changes is computed anew so often, in milliseconds; one of many bars less often, because it takes longer. */
const BEAT = 400;
const beatOf = (chains: number) => Math.max(BEAT, chains / 100);
const STATES: ChainState[] = ["running", "succeeded", "failed", "cancelled"];

/** Who executed what when. */
export function TimelineTab({ run }: { run: number }) {
  const view = useBoard(run);
  const { state } = view;
  const { query } = usePlace();
  const theme = useTheme();
  const step = query.get("step") ?? "";
  const chain = useChosenChain();
  const [set, setSet] = useState<number | null>(null);
  const [wanted, setWanted] = useState<TimelineFilter["state"]>(null);
  const [critical, setCritical] = useState(false);
  /** A bar can be selected without its chain being open. The attempt is that of a mishap, `null` for the last one. */
  const [choice, setChoice] = useState<{ chain: number; attempt: number | null } | null>(chain === null ? null : { chain, attempt: null });
  const live = state !== null && !state.over;
  const beat = useBeat(live, beatOf(state?.chains.length ?? 0));
  const path = useQuery<CriticalPath>(critical ? `/runs/${run}/critical-path` : null, live ? 10_000 : undefined);

  const picture = useMemo(() => {
    if (!view.state) return null;
    // The colours are those of the theme, and time goes on; the board itself changes in place.
    const colours = { none: token("state-registered"), failed: token("state-failed"), lost: token("state-cancelled") };
    const now = view.now();
    return { ...timeline(view.state, now, { step, set, state: wanted }, colours), until: live ? now : undefined };
  }, [live ? beat : view, view.state, step, set, wanted, theme]);
  const highlight = useMemo(() => {
    if (!critical || !path.data || !picture || !state) return undefined;
    const chains = new Set(path.data.links.map((link) => link.chain));
    return barsOf(picture, (source) => source >= 0 && chains.has(state.chains.chain[source]!));
  }, [critical, path.data, picture, state]);
  const selected = useMemo(() => (picture && state && choice ? find(picture, state, choice.chain, choice.attempt) : null), [picture, state, choice]);

  if (!state || !picture) return view.problem ? <ProblemNote problem={view.problem} /> : <Empty>Loading …</Empty>;
  const chainOf = (bar: number) => state.chains.chain[rowOf(state, picture.source[bar]!)]!;
  const select = (bar: number | null) => {
    setChoice(bar === null ? null : { chain: chainOf(bar), attempt: mishapOf(state, picture.source[bar]!)?.attempt ?? null });
    // What is open beside the picture follows the selection.
    if (chain !== null) chooseChain(bar === null ? null : chainOf(bar));
  };
  const total = picture.data.lane.length;
  const filtered = step !== "" || set !== null || wanted !== null;

  return (
    <div className={styles.tab}>
      <ProblemNote problem={view.problem ?? path.problem} />
      <div className={styles.controls}>
        <label>
          Step
          <input type="search" value={step} placeholder="any" onChange={(e) => setParameter("step", e.target.value || null)} />
        </label>
        <label>
          Capability set
          <select value={set ?? ""} onChange={(e) => setSet(e.target.value === "" ? null : Number(e.target.value))}>
            <option value="">any</option>
            <option value="-1">none required</option>
            {state.classes.map((each, i) => each.length > 0 && <option key={i} value={i}>{setName(each)}</option>)}
          </select>
        </label>
        <label>
          State
          <select value={wanted ?? ""} onChange={(e) => setWanted((e.target.value || null) as TimelineFilter["state"])}>
            <option value="">any</option>
            {STATES.map((each) => <option key={each}>{each}</option>)}
            <option value="mishap">failed attempts and lost agents</option>
          </select>
        </label>
        <Button aria-pressed={critical} className={classes(critical && styles.pressed)} onClick={() => setCritical(!critical)}>
          Critical path
        </Button>
        <span className={styles.spring} />
        <span className="soft">
          {count(total, "execution")} on {count(picture.data.lanes.length, "agent")}
        </span>
        <Button disabled={total === 0} title="For Perfetto and other viewers of traces" onClick={() => save(trace(state, picture), `run-${run}-trace.json`)}>
          Export trace
        </Button>
      </div>
      <div className={styles.split}>
        <div className={styles.picture}>
          {total === 0 ? (
            <Empty>{state.chains.length === 0 || !filtered ? "Nothing has been executed yet." : "Nothing is like that."}</Empty>
          ) : (
            <Lanes
              data={picture.data}
              label={`Timeline of run ${run}: ${count(total, "execution")} on ${count(picture.data.lanes.length, "agent")}`}
              describe={(bar) => sayBar(state, picture, bar)}
              selected={selected}
              onSelect={select}
              onOpen={(bar) => chooseChain(chainOf(bar))}
              highlight={highlight}
              until={picture.until}
              live={live}
            />
          )}
        </div>
        {chain !== null && <ChainPanel run={run} chain={chain} onClose={() => chooseChain(null)} />}
      </div>
    </div>
  );
}

/** Counts up while something is live and looked at. */
function useBeat(live: boolean, every: number): number {
  const [beat, setBeat] = useState(0);
  const pace = useRef(every);
  pace.current = every;
  useEffect(() => {
    if (!live) return;
    let timer: ReturnType<typeof setTimeout>;
    const next = () => {
      timer = setTimeout(() => {
        if (!document.hidden) setBeat((n) => n + 1);
        next();
      }, pace.current);
    };
    next();
    return () => clearTimeout(timer);
  }, [live]);
  return beat;
}

function barsOf(picture: Timeline, isOne: (source: number) => boolean): Set<number> {
  const bars = new Set<number>();
  picture.source.forEach((source, bar) => isOne(source) && bars.add(bar));
  return bars;
}

/** The bar of a chain: of an attempt if one was chosen, else the last one. */
function find(picture: Timeline, state: BoardState, chain: number, attempt: number | null): number | null {
  const row = state.chains.rowOf(chain);
  const { source } = picture;
  let found: number | null = null;
  for (let bar = 0; bar < source.length; bar++) {
    const mishap = mishapOf(state, source[bar]!);
    if (mishap ? mishap.chain !== chain : source[bar] !== row) continue;
    if (attempt === null ? !mishap : mishap?.attempt === attempt) return bar;
    found ??= bar;
  }
  return found;
}
