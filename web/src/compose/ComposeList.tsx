export default function ComposeList() {
  return <p>compose</p>;
}
