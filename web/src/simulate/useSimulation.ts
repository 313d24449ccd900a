import { useCallback, useEffect, useRef, useState } from "react";
import { asProblem, lines, Problem } from "../api/client";
import type { Figure, SimulatedTimeline, SimulateLine, SimulateRequest } from "../api/types";

/** What is known of a comparison so far. */
export interface Simulation {
  request: SimulateRequest;
  workload: { name: string; tasks: number } | null;
  figures: Figure[];
  timelines: SimulatedTimeline[];
  errors: string[];
  problem: Problem | undefined;
  state: "running" | "stopped" | "over";
}

/** Lines may come by the thousand; nobody can see more than a few pictures a second. */
const REFRESH = 120;

/** So often a server that is busy is asked again, every half a second. */
const PATIENCE = 20;

/** Compares policies, line by line as the server tells. */
export function useSimulation() {
  const [simulation, setSimulation] = useState<Simulation | null>(null);
  const [isAddingTimelines, setAddingTimelines] = useState(false);
  const abort = useRef<AbortController>(null);

  const stop = useCallback(() => abort.current?.abort(), []);
  useEffect(() => stop, [stop]);

  const start = useCallback(async (request: SimulateRequest) => {
    abort.current?.abort();
    const mine = (abort.current = new AbortController());
    setAddingTimelines(false);
    const known: Simulation = { request, workload: null, figures: [], timelines: [], errors: [], problem: undefined, state: "running" };
    setSimulation({ ...known });
    let shown = performance.now();
    const show = () => {
      shown = performance.now();
      // A comparison that has begun since then is what is shown.
      if (abort.current === mine) setSimulation({ ...known, figures: [...known.figures], timelines: [...known.timelines], errors: [...known.errors] });
    };
    try {
      for await (const line of told(request, mine.signal)) {
        if ("workload" in line) known.workload = line.workload;
        else if ("figure" in line) known.figures.push(line.figure);
        else if ("timeline" in line) known.timelines.push(line.timeline);
        else known.errors.push(line.error);
        if (performance.now() - shown > REFRESH) show();
      }
      known.state = "over";
    } catch (error) {
      known.state = mine.signal.aborted ? "stopped" : "over";
      if (!mine.signal.aborted) known.problem = asProblem(error);
    }
    show();
  }, []);

  /** Has the same simulated once more for one number of nodes, to see who was busy with what. */
  const addTimelines = useCallback(async (request: SimulateRequest, nodes: number) => {
    abort.current?.abort();
    const mine = (abort.current = new AbortController());
    setAddingTimelines(true);
    const found: SimulatedTimeline[] = [];
    let problem: Problem | undefined;
    try {
      for await (const line of told({ ...request, nodes: [nodes], timeline: nodes }, mine.signal)) {
        if ("timeline" in line) found.push(line.timeline);
      }
    } catch (error) {
      if (!mine.signal.aborted) problem = asProblem(error);
    }
    if (abort.current !== mine) return;
    setAddingTimelines(false);
    setSimulation((before) => before && { ...before, problem, timelines: [...before.timelines, ...found] });
  }, []);

  return { simulation, start, stop, addTimelines, isAddingTimelines };
}

async function* told(request: SimulateRequest, signal: AbortSignal): AsyncGenerator<SimulateLine> {
  for (let attempt = 0; ; attempt++) {
    try {
      for await (const line of lines("/simulate", { method: "POST", body: request, signal })) {
        if (line.trim()) yield JSON.parse(line) as SimulateLine;
      }
      return;
    } catch (error) {
      // A server simulates for one at a time, and needs a moment to notice that somebody has stopped.
      const isBusy = error instanceof Problem && error.status === 503;
      if (!isBusy || attempt >= PATIENCE || signal.aborted) throw error;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}
