import type { Diagnostic } from "@codemirror/lint";
import { StateEffect, StateField, type Text } from "@codemirror/state";
import { Decoration, EditorView, type DecorationSet } from "@codemirror/view";
import type { Mistake } from "../api/types";

/** A place in a text: line and column counted from 1, the column in characters. */
export function placeOf(text: Text, line: number, column = 1): number {
  const at = text.line(Math.min(Math.max(1, line), text.lines));
  // Columns count characters, places in the editor count units of UTF-16.
  const before = Array.from(at.text).slice(0, Math.max(0, column - 1)).join("");
  return at.from + before.length;
}

/** Mistakes as the editor marks them: from their place to the end of the word. */
export function diagnosticsOf(text: Text, mistakes: Mistake[]): Diagnostic[] {
  const placed = mistakes.filter((m) => m.line !== undefined);
  return placed.map((m) => {
    const line = text.line(Math.min(Math.max(1, m.line!), text.lines));
    const from = placeOf(text, m.line!, m.column);
    const word = /^(?:[\w.$-]+|\S+|.)/.exec(line.text.slice(from - line.from))?.[0] ?? "";
    const message = m.help ? `${m.message}\n${m.help}` : m.message;
    return { from, to: Math.min(line.to, from + word.length), severity: m.severity, message };
  });
}

/** Points out some lines, or none. */
export const pointOut = StateEffect.define<[number, number] | null>();

const pointed = Decoration.line({ class: "cm-pointed" });

/** The lines that are pointed out. They move with the text. */
export const pointedOut = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, transaction) {
    marks = marks.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (effect.is(pointOut)) marks = linesOf(transaction.state.doc, effect.value);
    }
    return marks;
  },
  provide: (field) => EditorView.decorations.from(field),
});

function linesOf(text: Text, lines: [number, number] | null): DecorationSet {
  if (!lines) return Decoration.none;
  const first = Math.max(1, lines[0]);
  const last = Math.min(lines[1], text.lines);
  const marks = [];
  for (let i = first; i <= last; i++) marks.push(pointed.range(text.line(i).from));
  return Decoration.set(marks);
}

/** The smallest change from one text to another, so that the cursor stays where it is. */
export function changeTo(from: string, to: string): { from: number; to: number; insert: string } {
  const most = Math.min(from.length, to.length);
  let start = 0;
  while (start < most && from[start] === to[start]) start++;
  let end = 0;
  while (end < most - start && from[from.length - 1 - end] === to[to.length - 1 - end]) end++;
  return { from: start, to: from.length - end, insert: to.slice(start, to.length - end) };
}
