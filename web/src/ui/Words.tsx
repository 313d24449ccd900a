/** What the server says in words: names between backticks are set apart. */
export function Words({ text }: { text: string }) {
  return text.split("`").map((part, i) => (i % 2 === 1 ? <code key={i}>{part}</code> : part));
}
