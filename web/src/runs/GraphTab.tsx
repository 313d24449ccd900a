import { useDeferredValue, useEffect, useId, useMemo, useState, type KeyboardEvent } from "react";
import { useQuery } from "../api/query";
import type { CriticalPath, GraphView } from "../api/types";
import { setParameter, usePlace } from "../app/router";
import { count } from "../ui/format";
import { Button, classes, Empty, ProblemNote } from "../ui/parts";
import { useBoard } from "./board";
import { ChainPanel } from "./ChainPanel";
import { chooseChain, useChosenChain } from "./chosenChain";
import { GraphModel, graphPath } from "./graphModel";
import { GraphPicture } from "./GraphPicture";
import { GraphStepPanel } from "./GraphStepPanel";
import { GraphTable } from "./GraphTable";
import styles from "./board.module.css";

/** So many names are offered while one is being typed. */
const OFFERED = 12;

/** The steps of a run, coloured by how they stand. */
export function GraphTab({ run }: { run: number }) {
  const { data, problem } = useQuery<GraphView>(`/runs/${run}/graph`);
  const model = useMemo(() => (data ? new GraphModel(data) : null), [data]);
  if (!model) return problem ? <ProblemNote problem={problem} /> : <Empty>Loading …</Empty>;
  if (model.view.nodes.length === 0) return <Empty>This workflow has no steps.</Empty>;
  return <Graph run={run} model={model} />;
}

function Graph({ run, model }: { run: number; model: GraphModel }) {
  const view = useBoard(run);
  const { query } = usePlace();
  const [asTable, setAsTable] = useState(false);
  const [critical, setCritical] = useState(false);
  const [text, setText] = useState("");
  const [sought, setSought] = useState<{ node: number } | null>(null);
  /** The node whose panel is to have the focus; another object each time. */
  const [entered, setEntered] = useState<{ node: number } | null>(null);
  const part = useDeferredValue(text);
  const live = view.state !== null && !view.state.over;
  const path = useQuery<CriticalPath>(critical ? `/runs/${run}/critical-path` : null, live ? 10_000 : undefined);
  // Steps become known one after the other, so their number says whether there are new ones.
  const steps = useMemo(() => model.stepsIn(view.state), [model, view.state, view.state?.steps.length]);
  const shownPath = useMemo(() => (critical && path.data ? graphPath(model, path.data.links) : null), [critical, path.data, model]);
  const chain = useChosenChain();
  const opened = model.find(query.get("step") ?? "");
  /** A node can be selected without being open. */
  const [selected, setSelected] = useState(opened);
  useEffect(() => {
    if (opened >= 0) setSelected(opened);
  }, [opened]);

  const open = (node: number) => {
    setSelected(node);
    chooseChain(null);
    setParameter("step", model.view.nodes[node]!.name);
  };
  const enter = (node: number) => {
    open(node);
    setEntered({ node });
  };
  const select = (node: number) => {
    setSelected(node);
    if (opened < 0 && chain === null) return;
    // What is open beside the picture follows the selection.
    if (node >= 0) open(node);
    else close();
  };
  const close = () => {
    chooseChain(null);
    setParameter("step", null);
  };
  const closeChain = () => {
    chooseChain(null);
    setEntered({ node: opened });
  };
  const seek = (node: number) => {
    setSought({ node });
    setSelected(node);
    if (asTable) open(node);
  };

  return (
    <div className={styles.tab}>
      <ProblemNote problem={view.problem ?? path.problem} />
      <div className={styles.controls}>
        <Finder model={model} text={text} onText={setText} onFind={seek} />
        <Button aria-pressed={critical} className={classes(critical && styles.pressed)} onClick={() => setCritical(!critical)}>
          Critical path
        </Button>
        <Button aria-pressed={asTable} className={classes(asTable && styles.pressed)} onClick={() => setAsTable(!asTable)}>
          As a table
        </Button>
        <span className={styles.spring} />
        <span className="soft">
          {count(model.view.nodes.length, "step")}, {count(view.state?.chains.length ?? 0, "chain")}
        </span>
      </div>
      <div className={styles.split}>
        <div className={styles.picture}>
          {asTable ? (
            <GraphTable model={model} view={view} steps={steps} selected={selected} part={part} onOpen={open} />
          ) : (
            <GraphPicture
              model={model}
              view={view}
              steps={steps}
              path={shownPath}
              selected={selected}
              onSelect={select}
              onOpen={open}
              onEnter={enter}
              sought={sought}
            />
          )}
        </div>
        {opened >= 0 && (
          <GraphStepPanel
            key={opened}
            run={run}
            model={model}
            node={opened}
            view={view}
            steps={steps}
            // It stays as it is for those who come back from a chain.
            hidden={chain !== null}
            entered={entered?.node === opened ? entered : null}
            onChain={chooseChain}
            onClose={close}
          />
        )}
        {chain !== null && <ChainPanel run={run} chain={chain} onClose={closeChain} />}
      </div>
    </div>
  );
}

/** Finds a step by a part of its name. Enter goes to the first one, and to the next with each further Enter. */
function Finder({ model, text, onText, onFind }: { model: GraphModel; text: string; onText: (text: string) => void; onFind: (node: number) => void }) {
  const [at, setAt] = useState(0);
  const list = useId();
  const found = useMemo(() => {
    const wanted = text.trim().toLowerCase();
    if (wanted === "") return [];
    const starts: number[] = [];
    const contains: number[] = [];
    model.view.nodes.forEach(({ name, service }, i) => {
      const lower = name.toLowerCase();
      if (lower.startsWith(wanted)) starts.push(i);
      else if (lower.includes(wanted) || service.toLowerCase().includes(wanted)) contains.push(i);
    });
    return [...starts, ...contains];
  }, [model, text]);

  const key = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || found.length === 0) return;
    onFind(found[at % found.length]!);
    setAt(at + 1);
  };
  return (
    <label>
      Find a step
      <input
        type="search"
        value={text}
        list={list}
        onKeyDown={key}
        onChange={(e) => {
          onText(e.target.value);
          setAt(0);
          const exact = model.find(e.target.value);
          // A name that was chosen from the list.
          if (exact >= 0) onFind(exact);
        }}
      />
      <datalist id={list}>
        {found.slice(0, OFFERED).map((i) => (
          <option key={i} value={model.view.nodes[i]!.name} />
        ))}
      </datalist>
      <span className="soft" role="status">
        {text.trim() === "" ? "" : found.length === 0 ? "not found" : count(found.length, "step")}
      </span>
    </label>
  );
}
