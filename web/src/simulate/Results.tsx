import { useMemo, useState } from "react";
import { count, number } from "../ui/format";
import { Button, Card, classes, Empty } from "../ui/parts";
import { save } from "../ui/save";
import { Chart } from "./Chart";
import { csv } from "./csv";
import type { Faults } from "./faults";
import { Grid, MAKESPAN, measuresFor } from "./measures";
import { ResultTable } from "./ResultTable";
import { seriesOf } from "./series";
import { Timelines } from "./Timelines";
import type { Simulation } from "./useSimulation";
import styles from "./simulate.module.css";

interface ResultsProps {
  simulation: Simulation;
  faults: Faults;
  /** All policies of the server, so that each has the same colour in every comparison. */
  known: string[];
  onTimelines: (nodes: number) => void;
  isAddingTimelines: boolean;
}

/** What came of a comparison, or has come so far. */
export function Results({ simulation, faults, known, onTimelines, isAddingTimelines }: ResultsProps) {
  const { request, figures, workload } = simulation;
  const [measureId, setMeasureId] = useState(MAKESPAN.id);
  const [pointed, setPointed] = useState<string | null>(null);
  const measures = measuresFor(figures);
  const measure = measures.find((m) => m.id === measureId) ?? MAKESPAN;
  const isRunning = simulation.state === "running";
  const grid = useMemo(() => new Grid(request.policies, isRunning ? request.nodes : [], figures), [request, isRunning, figures]);
  const series = useMemo(() => seriesOf(request.policies, known), [request.policies, known]);

  const actions = (
    <span className={styles.actions}>
      <label className={styles.inline}>
        Measure
        <select value={measure.id} onChange={(e) => setMeasureId(e.target.value)}>
          {measures.map((m) => (
            <option key={m.id} value={m.id}>
              {m.name}
            </option>
          ))}
        </select>
      </label>
      <Button disabled={figures.length === 0} onClick={() => save([csv(simulation)], "simulation.csv")}>
        Download as CSV
      </Button>
    </span>
  );
  return (
    <>
      <Card title={workload ? `${workload.name}, ${count(workload.tasks, "task")}` : "Results"} actions={actions}>
        <HowFar simulation={simulation} refused={faults.policies.size} />
        {figures.length > 0 ? (
          <>
            <ResultTable grid={grid} measure={measure} series={series} refused={faults.policies} isRunning={isRunning} pointed={pointed} onPoint={setPointed} />
            <Chart grid={grid} measure={measure} series={series} pointed={pointed} onPoint={setPointed} />
          </>
        ) : (
          !isRunning && <Empty>Nothing was simulated. What is in the way is said where it was chosen.</Empty>
        )}
      </Card>
      {figures.length > 0 && <Timelines simulation={simulation} nodes={grid.nodes} onTimelines={onTimelines} isAdding={isAddingTimelines} />}
    </>
  );
}

function HowFar({ simulation, refused }: { simulation: Simulation; refused: number }) {
  const { request, figures, state } = simulation;
  const total = request.nodes.length * (request.policies.length - refused);
  const words = `${number(figures.length)} of ${count(total, "simulation")}`;
  // Only the end is told aloud; every step would be too much.
  return (
    <>
      {state === "running" && (
        <div className={styles.howFar}>
          <progress max={Math.max(1, total)} value={figures.length} aria-label="Simulations done" /> {words}
        </div>
      )}
      <div role="status" aria-label="Comparison" className={classes(state !== "stopped" && "visually-hidden")}>
        {state === "stopped" ? `Stopped after ${words}.` : state === "over" ? `${words} done.` : ""}
      </div>
    </>
  );
}
