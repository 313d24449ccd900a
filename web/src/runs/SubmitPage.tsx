export default function SubmitPage({ again }: { again: string | null }) {
  return <p>{again}</p>;
}
