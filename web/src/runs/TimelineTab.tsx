/** Who executed what when. */
export function TimelineTab({ run }: { run: number }) {
  return <p>{run}</p>;
}
