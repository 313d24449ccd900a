import { isPlain, plainText, type Segment } from "./ansi";
import type { LogText } from "./logText";

/** Where something was found: the line, counted from where the log part began, and the place in its text. */
export interface Hit {
  line: number;
  at: number;
}

/** More are not counted. */
export const MOST_HITS = 10_000;

/** Looks for a text in some lines, whatever its case. */
export function findIn(log: LogText, query: string, from: number, to: number, hits: Hit[]): void {
  const wanted = folded(query);
  if (!wanted) return;
  for (let i = from; i < to && hits.length < MOST_HITS; i++) {
    for (const at of places(textOf(log.lines[i]!), wanted)) {
      hits.push({ line: i - log.shift, at });
      if (hits.length >= MOST_HITS) return;
    }
  }
}

/** What a line shows, for comparing. */
function textOf(line: string): string {
  return folded(isPlain(line) ? line : plainText(line));
}

/** Lower case, if that leaves all characters where they are; of few languages it does not. */
function folded(text: string): string {
  const lower = text.toLowerCase();
  return lower.length === text.length ? lower : text;
}

/** Where a text occurs, without overlaps. */
export function places(text: string, wanted: string): number[] {
  const all: number[] = [];
  if (!wanted) return all;
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) all.push(at);
  return all;
}

/** A segment of which a part may be pointed out. */
export interface Marked extends Segment {
  /** Whether it was found, and whether it is the one that is looked at. */
  hit?: "one" | "current";
}

/** Segments, cut where what was found begins and ends. */
export function marked(segments: Segment[], query: string, current: number | null): Marked[] {
  const wanted = folded(query);
  const starts = places(folded(segments.map((s) => s.text).join("")), wanted);
  if (starts.length === 0) return segments;
  const all: Marked[] = [];
  let offset = 0;
  for (const { text, style } of segments) {
    let done = 0;
    for (const start of starts) {
      const from = Math.max(start - offset, done);
      const to = Math.min(start + wanted.length - offset, text.length);
      if (from >= to) continue;
      if (from > done) all.push({ text: text.slice(done, from), style });
      all.push({ text: text.slice(from, to), style, hit: start === current ? "current" : "one" });
      done = to;
    }
    if (done < text.length) all.push({ text: text.slice(done), style });
    offset += text.length;
  }
  return all;
}
