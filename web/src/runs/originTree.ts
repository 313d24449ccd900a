import type { Provenance } from "../api/types";

export type Origin = Provenance["tasks"][number];

/** A task, and below it those whose outputs it has read. */
export interface OriginNode {
  task: Origin;
  below: OriginNode[];
  /** What it comes from stands at another place already. */
  isRepeated: boolean;
}

/**
 * Tasks as a tree: the last ones on top, below each what it was made from. A task that several others have read from is told in full
 * where it occurs first. Of a single file, only what led to it is told.
 */
export function originTree(tasks: Origin[], file?: string): OriginNode[] {
  const makers = new Map<string, Origin>();
  for (const task of tasks) for (const output of task.outputs) makers.set(output, task);
  const sourcesOf = (task: Origin) => [...new Set(task.inputs.map((i) => makers.get(i)))].filter((t) => t !== undefined && t !== task) as Origin[];
  const read = new Set(tasks.flatMap(sourcesOf));
  const told = new Set<Origin>();

  // By hand and not by recursion: chains of thousands of tasks are no exception.
  const roots: OriginNode[] = [];
  const open: { task: Origin; into: OriginNode[] }[] = [];
  const tell = (first: Origin) => {
    open.push({ task: first, into: roots });
    for (let next = open.pop(); next; next = open.pop()) {
      const node: OriginNode = { task: next.task, below: [], isRepeated: told.has(next.task) };
      next.into.push(node);
      if (node.isRepeated) continue;
      told.add(next.task);
      for (const source of sourcesOf(next.task).reverse()) open.push({ task: source, into: node.below });
    }
  };
  const maker = file === undefined ? undefined : makers.get(file);
  if (maker) {
    tell(maker);
    return roots;
  }
  tasks.filter((t) => !read.has(t)).forEach(tell);
  // What is left reads from itself in a circle; that should not be, but it is not hidden either.
  tasks.filter((t) => !told.has(t)).forEach((t) => told.has(t) || tell(t));
  return roots;
}
