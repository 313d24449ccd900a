export function RunPage({ id, tab }: { id: number; tab: string }) {
  return <p>{id} {tab}</p>;
}
