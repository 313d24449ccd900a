import { useEffect, useMemo, useRef, useState, type FormEvent } from "react";
import { useQuery } from "../api/query";
import type { SimulateChoices } from "../api/types";
import { go, usePlace } from "../app/router";
import { keepInTab } from "../app/tabStorage";
import { Button, Card, Empty, Note, Page, ProblemNote } from "../ui/parts";
import { allPolicies, fromQuery, OWN, toQuery, toRequest, type Choices, type Wrong } from "./choices";
import { ClusterChoice } from "./ClusterChoice";
import { NO_FAULTS, sortOut } from "./faults";
import { NodesChoice } from "./NodesChoice";
import { PolicyChoice } from "./PolicyChoice";
import { Results } from "./Results";
import { timelineNodes } from "./timelineData";
import { useSimulation } from "./useSimulation";
import { WorkflowChoice } from "./WorkflowChoice";
import styles from "./simulate.module.css";

/** A description of a cluster is too long for an address, and too much work to be lost. */
const KEPT = "catena.simulate.cluster";

/** How long would it take, on how many nodes, and who should decide? */
export default function SimulatePage({ run }: { run: string | null }) {
  const { query } = usePlace();
  const offered = useQuery<SimulateChoices>("/simulate");
  const [choices, setChoices] = useState<Choices>(() => {
    const first = fromQuery(query);
    return { ...first, yaml: sessionStorage.getItem(KEPT) ?? first.yaml };
  });
  const [wrong, setWrong] = useState<Wrong>({});
  const { simulation, start, stop, addTimelines, isAddingTimelines } = useSimulation();
  const change = (part: Partial<Choices>) => {
    setChoices((before) => ({ ...before, ...part }));
    setWrong({});
  };
  useAddress(choices, run, change);
  useEffect(() => keepInTab(KEPT, choices.yaml), [choices.yaml]);

  const faults = useMemo(
    () => (simulation ? sortOut(simulation.request, simulation.problem, simulation.errors) : NO_FAULTS),
    [simulation?.request, simulation?.problem, simulation?.errors],
  );
  // What is wrong with a text says nothing about another one.
  const isSameCluster = simulation?.request.cluster === choices.yaml;
  const isSameFile = simulation !== null && "file" in simulation.request.workflow && simulation.request.workflow.text === choices.text;
  const isRunning = simulation?.state === "running";

  function compare(event: FormEvent) {
    event.preventDefault();
    const { request, wrong } = toRequest(choices);
    setWrong(wrong);
    if (Object.keys(wrong).length === 0) void start({ ...request, timeline: timelineNodes(request.nodes) });
  }

  if (!offered.data) {
    return <Page title="Simulate">{offered.problem ? <ProblemNote problem={offered.problem} /> : <Empty>Loading …</Empty>}</Page>;
  }
  return (
    <Page title="Simulate">
      <div className={styles.layout}>
        <form className={styles.form} onSubmit={compare} aria-label="What to simulate" noValidate>
          <WorkflowChoice choices={choices} change={change} shapes={offered.data.shapes} wrong={wrong.workflow} mistakes={isSameFile ? faults.workflow : []} />
          <ClusterChoice choices={choices} change={change} clusters={offered.data.clusters} wrong={wrong.cluster} mistakes={isSameCluster ? faults.cluster : []} />
          <NodesChoice choices={choices} change={change} wrong={wrong} />
          <PolicyChoice choices={choices} change={change} policies={offered.data.policies} wrong={wrong.policies} faults={faults.policies} />
          <div className={styles.start}>
            <Button type="submit" look="primary">
              Compare
            </Button>
            {isRunning && <Button onClick={stop}>Stop</Button>}
            {Object.keys(wrong).length > 0 && (
              <span role="alert" className={styles.wrong}>
                Something above is not right yet.
              </span>
            )}
          </div>
        </form>
        <div className={styles.results}>
          {faults.other.length > 0 && <Note kind="error">{faults.other.join("\n")}</Note>}
          {simulation ? (
            <Results
              simulation={simulation}
              faults={faults}
              known={offered.data.policies.map((p) => p.id)}
              onTimelines={(nodes) => void addTimelines(simulation.request, nodes)}
              isAddingTimelines={isAddingTimelines}
            />
          ) : (
            <Introduction count={allPolicies(choices).length} isOwn={choices.cluster === OWN} />
          )}
        </div>
      </div>
    </Page>
  );
}

function Introduction({ count, isOwn }: { count: number; isOwn: boolean }) {
  return (
    <Card>
      <Empty>
        <p>A simulation executes a workflow in virtual time, before anybody pays for the nodes.</p>
        <p>
          Choose a workflow, {isOwn ? "describe a cluster" : "a cluster"} and who decides, then <strong>Compare</strong>:{" "}
          {count === 1 ? "one policy is" : `${count} policies are`} tried with every number of nodes.
        </p>
      </Empty>
    </Card>
  );
}

/** Keeps the address as the choices are, and takes a run that a link names. */
function useAddress(choices: Choices, run: string | null, change: (part: Partial<Choices>) => void) {
  const written = useRef(toQuery(choices));
  useEffect(() => {
    if (run !== null && run !== choices.run) change({ source: "run", run, cluster: choices.cluster === OWN ? OWN : "plain" });
    // Only a new address counts here; what is chosen meanwhile is written there below.
  }, [run]);
  useEffect(() => {
    const text = toQuery(choices);
    if (text === written.current) return;
    // Browsers refuse addresses that change with every key.
    const timer = setTimeout(() => {
      written.current = text;
      go(`/simulate?${text}`, { replace: true });
    }, 300);
    return () => clearTimeout(timer);
  }, [choices]);
}
