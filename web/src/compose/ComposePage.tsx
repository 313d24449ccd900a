export default function ComposePage({ id }: { id: string }) {
  return <p>{id}</p>;
}
