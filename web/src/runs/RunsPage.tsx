export function RunsPage() {
  return <p>runs</p>;
}
