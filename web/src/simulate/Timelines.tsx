import { useCallback, useMemo, useState } from "react";
import type { SimulatedTimeline } from "../api/types";
import { Lanes } from "../canvas/Lanes";
import { count, duration } from "../ui/format";
import { Card, Empty } from "../ui/parts";
import { lanesOf, programsOf, timelineNodes } from "./timelineData";
import type { Simulation } from "./useSimulation";
import styles from "./simulate.module.css";

interface TimelinesProps {
  simulation: Simulation;
  nodes: number[];
  /** Has timelines made for another number of nodes. */
  onTimelines: (nodes: number) => void;
  isAdding: boolean;
}

/** Who was busy with what, for each policy, on the same axis of time. */
export function Timelines({ simulation, nodes, onTimelines, isAdding }: TimelinesProps) {
  const { request, timelines } = simulation;
  const [wanted, setWanted] = useState<number | null>(null);
  const chosen = wanted !== null && nodes.includes(wanted) ? wanted : (request.timeline ?? timelineNodes(nodes));
  const shown = useMemo(() => inOrder(timelines, chosen, request.policies), [timelines, chosen, request.policies]);
  const programs = useMemo(() => programsOf(shown), [shown]);
  const longest = Math.max(0, ...shown.map((t) => t.makespan));
  const shortest = Math.min(...shown.map((t) => t.makespan));

  function choose(nodes: number) {
    setWanted(nodes);
    if (!timelines.some((t) => t.nodes === nodes)) onTimelines(nodes);
  }

  const choice = (
    <label className={styles.inline}>
      with
      <select aria-label="Timelines for how many nodes" value={chosen} disabled={simulation.state === "running"} onChange={(e) => choose(Number(e.target.value))}>
        {nodes.map((n) => (
          <option key={n} value={n}>
            {count(n, "node")}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <Card title="Who was busy with what" actions={choice}>
      {shown.length === 0 ? (
        <Empty>{isAdding || simulation.state === "running" ? "Simulating …" : "There are no timelines for this number of nodes."}</Empty>
      ) : (
        <div className={styles.timelines}>
          {shown.map((timeline) => (
            <Timeline
              key={timeline.policy}
              timeline={timeline}
              programs={programs}
              until={longest * 1000}
              isBest={shown.length > 1 && timeline.makespan === shortest}
            />
          ))}
        </div>
      )}
    </Card>
  );
}

function Timeline({ timeline, programs, until, isBest }: { timeline: SimulatedTimeline; programs: string[]; until: number; isBest: boolean }) {
  const [selected, setSelected] = useState<number | null>(null);
  const data = useMemo(() => lanesOf(timeline, programs), [timeline, programs]);
  const describe = useCallback((bar: number) => describeTask(timeline, bar), [timeline]);
  return (
    <section aria-label={`Timeline of ${timeline.policy}`}>
      <h3 className={styles.timelineTitle}>
        {timeline.policy} <span className="soft">{duration(timeline.makespan * 1000)}</span>
        {isBest && (
          <span className={styles.best}>
            {" "}
            <span aria-hidden="true">★</span> shortest
          </span>
        )}
      </h3>
      <Lanes
        data={data}
        label={`${timeline.policy}: who was busy with what on ${count(timeline.nodes, "node")}`}
        describe={describe}
        selected={selected}
        onSelect={setSelected}
        until={until}
        height={260}
      />
      {selected !== null && <p className={styles.hint}>{describe(selected)}</p>}
    </section>
  );
}

function describeTask(timeline: SimulatedTimeline, bar: number): string {
  const program = timeline.programs[timeline.program[bar]!] ?? "";
  const [start, end] = [timeline.start[bar]!, timeline.end[bar]!];
  const vain = timeline.vain[bar] ? ", in vain" : "";
  return `${program} on ${timeline.names[timeline.node[bar]!]}: ${duration((end - start) * 1000)}, from ${duration(start * 1000)} on${vain}`;
}

/** The timelines for so many nodes, in the order of the policies. */
function inOrder(timelines: SimulatedTimeline[], nodes: number, policies: string[]): SimulatedTimeline[] {
  return policies.flatMap((policy) => timelines.find((t) => t.policy === policy && t.nodes === nodes) ?? []);
}
