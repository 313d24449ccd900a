export default function SimulatePage({ run }: { run: string | null }) {
  return <p>{run}</p>;
}
