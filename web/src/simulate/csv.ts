import type { Simulation } from "./useSimulation";

const HEAD = "workflow,tasks,nodes,policy,seed,makespan,bytes_moved,utilisation,cost,wasted,lower_bound";

/** The figures as `catena simulate --csv` writes them. */
export function csv(simulation: Simulation): string {
  const { workload, request, figures } = simulation;
  const rows = figures.map((f) =>
    [
      workload?.name ?? "",
      workload?.tasks ?? "",
      f.nodes,
      f.policy,
      request.seed ?? 1,
      f.makespan,
      f.bytes_moved,
      f.utilisation,
      f.cost,
      f.wasted,
      f.lower_bound,
    ]
      .map(quote)
      .join(","),
  );
  return [HEAD, ...rows].join("\n") + "\n";
}

function quote(value: string | number): string {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
