/** What the end of a run waited for. */
export function CriticalPathTab({ run }: { run: number }) {
  return <p>{run}</p>;
}
