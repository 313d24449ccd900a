import { isPlain, parseLine, PLAIN, type Style } from "./ansi";

/** More lines than these are not held; who needs them downloads the log. */
export const MOST_LINES = 400_000;
/** Longer lines are cut, so that none takes longer to show than others. */
const LONGEST = 4000;
const NEWLINE = 10;

/**
 * A part of a log that grows at its end, and at its beginning when earlier parts are loaded. Offsets are those of the bytes in the
 * log. Made for hundreds of thousands of lines: nothing here looks at all of them again.
 */
export class LogText {
  /** Where the part begins and ends. */
  start: number;
  end: number;
  /** The lines, and the style in which each of them begins. */
  readonly lines: string[] = [];
  readonly styles: Style[] = [];
  /** How many lines were put before others or taken away there since the beginning; places in `lines` move by the difference. */
  shift = 0;
  /** The length of the longest line, for how wide the log is. */
  widest = 0;
  /** Whether there were more lines than are held. */
  hasDropped = false;
  /** What is before the first whole line of this part: it belongs to a line that begins earlier. */
  private head: Uint8Array = new Uint8Array();
  /** What follows the last newline; shown as the last line, though more of it may come. */
  private tail: Uint8Array = new Uint8Array();
  /** How many of the last lines are made from the tail. */
  private open = 0;
  private styleAfter: Style = PLAIN;

  constructor(offset: number) {
    this.start = offset;
    this.end = offset;
  }

  /** Adds what follows. */
  append(bytes: Uint8Array) {
    const isFirst = this.end === this.start && this.start > 0;
    this.end += bytes.length;
    if (isFirst) {
      const first = firstNewline(bytes);
      this.head = bytes.slice(0, first);
      bytes = bytes.subarray(first);
    }
    this.forgetOpen();
    const all = joined(this.tail, bytes);
    const last = all.lastIndexOf(NEWLINE) + 1;
    this.addLines(decoded(all.subarray(0, last), true));
    this.tail = all.slice(last);
    this.showOpen();
    if (this.lines.length > MOST_LINES) this.dropFirst(this.lines.length - MOST_LINES);
  }

  /** Puts what comes directly before this part there. */
  prepend(bytes: Uint8Array) {
    this.start -= bytes.length;
    const all = joined(bytes, this.head);
    const first = this.start > 0 ? firstNewline(all) : 0;
    this.head = all.slice(0, first);
    const added = decoded(all.subarray(first), true);
    insertFirst(this.lines, added);
    insertFirst(this.styles, new Array<Style>(added.length).fill(PLAIN));
    this.shift += added.length;
    for (const line of added) this.widest = Math.max(this.widest, line.length);
    this.restyle(added.length);
  }

  /** Lines that are done: those before this one do not change any more. */
  get settled(): number {
    return this.lines.length - this.open;
  }

  private addLines(lines: string[]) {
    for (const line of lines) {
      this.lines.push(line);
      this.styles.push(this.styleAfter);
      this.widest = Math.max(this.widest, line.length);
      if (!isPlain(line)) this.styleAfter = parseLine(line, this.styleAfter).style;
    }
  }

  private showOpen() {
    const before = this.lines.length;
    const style = this.styleAfter;
    if (this.tail.length > 0) this.addLines(decoded(this.tail, false));
    this.open = this.lines.length - before;
    this.styleAfter = style;
  }

  private forgetOpen() {
    this.lines.length -= this.open;
    this.styles.length -= this.open;
    this.open = 0;
  }

  private dropFirst(count: number) {
    this.lines.splice(0, count);
    this.styles.splice(0, count);
    this.shift -= count;
    this.hasDropped = true;
  }

  /** Styles go over from what was put before to what was there, until that makes no difference any more. */
  private restyle(added: number) {
    let style = PLAIN;
    for (let i = 0; i < this.lines.length; i++) {
      // The open line is going to be read again from here.
      if (i === this.settled) this.styleAfter = style;
      if (i >= added && this.styles[i] === style) return;
      this.styles[i] = style;
      const line = this.lines[i]!;
      if (!isPlain(line)) style = parseLine(line, style).style;
    }
    if (this.open === 0) this.styleAfter = style;
  }
}

/** Where the first whole line begins; the very beginning if none does for long. */
function firstNewline(bytes: Uint8Array): number {
  const found = bytes.subarray(0, LONGEST).indexOf(NEWLINE);
  return found + 1;
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  if (a.length === 0) return b;
  const all = new Uint8Array(a.length + b.length);
  all.set(a);
  all.set(b, a.length);
  return all;
}

function insertFirst<T>(list: T[], added: T[]) {
  const rest = list.splice(0, list.length);
  for (const item of added) list.push(item);
  for (const item of rest) list.push(item);
}

/** The lines in some bytes. Whole ones end with a newline. */
function decoded(bytes: Uint8Array, whole: boolean): string[] {
  if (bytes.length === 0) return [];
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  const lines = text.split("\n");
  if (whole && lines.at(-1) === "") lines.pop();
  return lines.flatMap((line) => pieces(line));
}

/** A line in pieces that are not too long. None ends within an escape sequence or a character. */
function pieces(line: string): string[] {
  if (line.length <= LONGEST) return [line];
  const all: string[] = [];
  while (line.length > LONGEST) {
    const escape = line.lastIndexOf("\x1b", LONGEST - 1);
    let cut = escape > LONGEST - 64 ? escape : LONGEST;
    if (/[\ud800-\udbff]/.test(line[cut - 1]!)) cut -= 1;
    all.push(line.slice(0, cut));
    line = line.slice(cut);
  }
  all.push(line);
  return all;
}
