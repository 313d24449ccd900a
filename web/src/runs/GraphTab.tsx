/** The steps of a run, coloured by how they stand. */
export function GraphTab({ run }: { run: number }) {
  return <p>{run}</p>;
}
