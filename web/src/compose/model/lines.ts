/** The lines of a workflow in the text of a composition: the first and the last, counted from 1. */
export function linesOf(text: string, workflow: string): [number, number] | undefined {
  const lines = text.split("\n");
  const start = lines.findIndex((l) => l === "workflows:");
  if (start < 0) return undefined;
  const heads = [`  ${workflow}:`, `  "${workflow}":`, `  '${workflow}':`];
  const from = lines.findIndex((l, i) => i > start && heads.some((h) => l.startsWith(h)));
  if (from < 0) return undefined;
  const next = lines.findIndex((l, i) => i > from && /^ {0,2}\S/.test(l));
  return [from + 1, next < 0 ? lines.length : next];
}
