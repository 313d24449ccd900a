import { expect, test } from "@playwright/test";
import { isPlain, parseLine, PLAIN, plainText } from "../../src/runs/logs/ansi";
import { findIn, marked, MOST_HITS, places, type Hit } from "../../src/runs/logs/find";
import { LogText, MOST_LINES } from "../../src/runs/logs/logText";

const bytes = (text: string) => new TextEncoder().encode(text);
const styled = (line: string) => parseLine(line).segments;
const textOf = (line: string) => styled(line).map((s) => s.text).join("");

test("colours and weights are kept as data", () => {
  expect(styled("a\x1b[1;31mb\x1b[0mc")).toEqual([
    { text: "a", style: {} },
    { text: "b", style: { bold: true, colour: 1 } },
    { text: "c", style: {} },
  ]);
  const colour = (codes: string) => styled(`\x1b[${codes}mx`)[0]!.style;
  expect(colour("97")).toEqual({ colour: 15 });
  expect(colour("104")).toEqual({ ground: 12 });
  expect(colour("38;5;9")).toEqual({ colour: 9 });
  expect(colour("38;5;196")).toEqual({ colour: [255, 0, 0] });
  expect(colour("38;5;67")).toEqual({ colour: [95, 135, 175] });
  expect(colour("48;5;232")).toEqual({ ground: [8, 8, 8] });
  expect(colour("38;2;1;2;300;4")).toEqual({ colour: [1, 2, 255], underline: true });
  expect(colour("31;39;1;22")).toEqual({ colour: undefined, bold: false, dim: false });
  expect(colour("")).toEqual({});
});

test("parameters after a colon belong to the one before", () => {
  const style = (codes: string) => styled(`\x1b[${codes}mx`)[0]!.style;
  // A curly underline is one, not an underline in italics, and none is not a reset.
  expect(style("1;4:3")).toEqual({ bold: true, underline: true });
  expect(style("1;4;4:0")).toEqual({ bold: true, underline: false });
  expect(style("38:5:196")).toEqual({ colour: [255, 0, 0] });
  expect(style("38:2:1:2:3")).toEqual({ colour: [1, 2, 3] });
  expect(style("38:2::1:2:3;1")).toEqual({ colour: [1, 2, 3], bold: true });
});

test("a style goes on in the next line", () => {
  const { style } = parseLine("\x1b[32mgreen");
  expect(parseLine("still", style).segments).toEqual([{ text: "still", style: { colour: 2 } }]);
  expect(parseLine("a\x1b[m", style).style).toBe(PLAIN);
});

test("what steers a terminal is left out", () => {
  expect(textOf("a\x1b[2Kb\x1b[?25lc\x1b[10;20Hd")).toBe("abcd");
  expect(textOf("\x1b]0;title\x07a\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\b")).toBe("alinkb");
  expect(textOf("a\x1b]0;title without an end")).toBe("a");
  expect(textOf("a\x9b31mb\x9dtitle\x9cc")).toBe("abc");
  expect(textOf("a\x07\x08\x00b\tc\x1b(Bd\x1bMe\x1b[")).toBe("ab\tcde");
  expect(textOf("\x1bPdata\x1b\\a")).toBe("a");
});

test("text that would turn around is shown as something strange", () => {
  expect(textOf("a\u202egpj.exe")).toBe("a\ufffdgpj.exe");
  expect(isPlain("a\u2066b")).toBe(false);
});

test("a progress bar shows what it says last", () => {
  expect(textOf("10 %\r50 %\r100 %")).toBe("100 %");
  // Lines of other systems end with a carriage return, after which nothing is written.
  expect(textOf("done\r")).toBe("done");
  expect(styled("\x1b[31mold\r\x1b[32mnew")).toEqual([{ text: "new", style: { colour: 2 } }]);
});

test("the plain text of a line is what is shown of it", () => {
  for (const line of ["plain", "a\x1b[31mb\x1b[0m", "10\r20", "\x1b]0;t\x07x", "a\u202eb", "tab\there"]) {
    expect(plainText(line)).toBe(textOf(line));
  }
  expect(isPlain("tab\there, ümlaut")).toBe(true);
  expect(isPlain("\x1b[0m")).toBe(false);
});

test("a log is the same however it arrives", () => {
  const whole = "first\nsecond ü 🧬\n\n\x1b[31mred\nstill\x1b[0m\nend without a newline";
  const all = bytes(whole);
  for (const size of [1, 2, 3, 7, 1000]) {
    const log = new LogText(0);
    for (let at = 0; at < all.length; at += size) log.append(all.slice(at, at + size));
    expect(log.lines, `${size} at a time`).toEqual(whole.split("\n"));
    expect(log.styles).toEqual([{}, {}, {}, {}, { colour: 1 }, {}]);
    expect(log.end).toBe(all.length);
    expect(log.settled).toBe(5);
    expect(log.widest).toBe("end without a newline".length);
  }
});

test("a log that begins in the middle of a line shows whole lines only, until what is before is loaded", () => {
  const whole = "one\ntwo\nthree\nfour\n";
  const log = new LogText(9);
  log.append(bytes(whole.slice(9)));
  expect(log.lines).toEqual(["four"]);
  log.prepend(bytes(whole.slice(5, 9)));
  expect(log.lines).toEqual(["three", "four"]);
  expect(log.start).toBe(5);
  expect(log.shift).toBe(1);
  log.prepend(bytes(whole.slice(0, 5)));
  expect(log.lines).toEqual(["one", "two", "three", "four"]);
  expect(log.start).toBe(0);
  log.append(bytes("five\n"));
  expect(log.lines.at(-1)).toBe("five");
});

test("colours that begin earlier come with what is loaded before", () => {
  const log = new LogText(100);
  log.append(bytes("x\nred?\nplain\x1b[0m\nafter\n"));
  expect(log.styles).toEqual([{}, {}, {}]);
  log.prepend(bytes("\n\x1b[31mhere\n"));
  expect(log.lines).toEqual(["\x1b[31mhere", "x", "red?", "plain\x1b[0m", "after"]);
  expect(log.styles).toEqual([{}, { colour: 1 }, { colour: 1 }, { colour: 1 }, {}]);
});

test("colours that begin earlier also go on in what follows", () => {
  const log = new LogText(100);
  log.append(bytes("\nhere\n"));
  log.prepend(bytes("\n\x1b[31mred"));
  log.append(bytes("later\n"));
  expect(log.styles.at(-1)).toEqual({ colour: 1 });
});

test("a line that goes on keeps the colour in which it begins, also if earlier ones are loaded meanwhile", () => {
  const log = new LogText(100);
  log.append(bytes("\nopen \x1b[31mred"));
  log.prepend(bytes("\n\x1b[1mbold"));
  expect(log.styles.at(-1)).toEqual({ bold: true });
  log.append(bytes(" more\nnext\n"));
  expect(log.lines.slice(-2)).toEqual(["open \x1b[31mred more", "next"]);
  expect(log.styles.slice(-2)).toEqual([{ bold: true }, { bold: true, colour: 1 }]);
});

test("a line that is too long is cut, but not within a character or a sequence", () => {
  const log = new LogText(0);
  log.append(bytes("x".repeat(3999) + "🧬" + "y".repeat(10) + "\n"));
  expect(log.lines.map((l) => l.length)).toEqual([3999, 12]);
  const other = new LogText(0);
  other.append(bytes("x".repeat(3998) + "\x1b[31m" + "red\n"));
  expect(other.lines.map((l) => l.length)).toEqual([3998, 8]);
  expect(other.lines.map(plainText).join("")).toBe("x".repeat(3998) + "red");
});

test("of too many lines the first are dropped", () => {
  const log = new LogText(0);
  log.append(bytes("a\n".repeat(MOST_LINES)));
  expect(log.hasDropped).toBe(false);
  log.append(bytes("b\n"));
  expect(log.lines).toHaveLength(MOST_LINES);
  expect(log).toMatchObject({ hasDropped: true, shift: -1 });
  expect(log.lines.at(-1)).toBe("b");
});

test("what is looked for is found whatever its case, in what is shown", () => {
  const log = new LogText(0);
  log.append(bytes("Error one\n\x1b[31mer\x1b[0mror two, ERROR three\nnothing\n"));
  const hits: Hit[] = [];
  findIn(log, "eRRor", 0, log.lines.length, hits);
  expect(hits).toEqual([{ line: 0, at: 0 }, { line: 1, at: 0 }, { line: 1, at: 11 }]);
  expect(places("aaaa", "aa")).toEqual([0, 2]);
  expect(places("abc", "")).toEqual([]);
  findIn(log, "", 0, log.lines.length, hits);
  expect(hits).toHaveLength(3);
});

test("what was found stays where it is when earlier lines are loaded", () => {
  const log = new LogText(20);
  log.append(bytes("\nhere\n"));
  const hits: Hit[] = [];
  findIn(log, "here", 0, log.lines.length, hits);
  log.prepend(bytes("\nearlier"));
  expect(log.lines[hits[0]!.line + log.shift]).toBe("here");
  const again: Hit[] = [];
  findIn(log, "here", 0, log.lines.length, again);
  expect(again).toEqual(hits);
});

test("not more is counted than anybody looks at", () => {
  const log = new LogText(0);
  log.append(bytes("aaaaaaaaaa\n".repeat(MOST_HITS)));
  const hits: Hit[] = [];
  findIn(log, "a", 0, log.lines.length, hits);
  expect(hits).toHaveLength(MOST_HITS);
});

test("what was found is pointed out over the ends of colours", () => {
  const red = { colour: 1 };
  const segments = [{ text: "an er", style: {} }, { text: "ror, error", style: red }];
  expect(marked(segments, "ERROR", 10)).toEqual([
    { text: "an ", style: {} },
    { text: "er", style: {}, hit: "one" },
    { text: "ror", style: red, hit: "one" },
    { text: ", ", style: red },
    { text: "error", style: red, hit: "current" },
  ]);
  expect(marked(segments, "none", null)).toBe(segments);
});
