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
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Has the browser keep a text as a file. */
export function save(name: string, text: string, type: string) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
