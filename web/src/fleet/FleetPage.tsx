export function FleetPage() {
  return <p>fleet</p>;
}
