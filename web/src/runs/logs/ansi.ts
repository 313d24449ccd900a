/**
 * What programs write for terminals, made harmless: colours and weights are kept as data, everything else that is meant to steer a
 * terminal (titles, cursor movements, links, bells) is left out.
 */

/** A colour: one of the sixteen a theme decides about, or three numbers from 0 to 255. */
export type Colour = number | readonly [number, number, number];

/** How text looks. Never changed, so that lines can share it. */
export interface Style {
  readonly colour?: Colour;
  readonly ground?: Colour;
  readonly bold?: boolean;
  readonly dim?: boolean;
  readonly italic?: boolean;
  readonly underline?: boolean;
  readonly strike?: boolean;
  readonly inverse?: boolean;
}

/** Text that looks the same from one end to the other. */
export interface Segment {
  text: string;
  style: Style;
}

export const PLAIN: Style = {};

/**
 * Everything that is not text. In this order: colours; other control sequences; commands with a text of their own (titles, links),
 * which end with a bell, a string terminator, or the line; other escapes; single control characters except the tabulator and the
 * carriage return.
 */
const CONTROL =
  /(?:\x1b\[|\x9b)([0-9;:]*)m|(?:\x1b\[|\x9b)[0-?]*[ -/]*(?:[@-~]|$)|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|(?=\x1b)|$)|\x1b[ -/]*(?:[0-~]|$)|[\x00-\x08\x0a-\x0c\x0e-\x1f\x7f-\x9f]/g;

/** Characters that turn the direction of text around, by which it could show something else than it is. */
const TURNING = /[\u202a-\u202e\u2066-\u2069]/g;

/** The parts of a line that begins in a style, and the style in which the next one begins. */
export function parseLine(line: string, style: Style = PLAIN): { segments: Segment[]; style: Style } {
  let segments: Segment[] = [];
  let from = 0;
  let isBack = false;
  const push = (raw: string) => {
    for (const [i, part] of raw.split("\r").entries()) {
      if (i > 0) isBack = true;
      if (!part) continue;
      // After a carriage return, a terminal writes over what is there already.
      if (isBack) segments = [];
      isBack = false;
      segments.push({ text: part.replace(TURNING, "\ufffd"), style });
    }
  };
  for (const match of line.matchAll(CONTROL)) {
    push(line.slice(from, match.index));
    from = match.index + match[0].length;
    if (match[1] !== undefined) style = restyled(style, match[1]);
  }
  push(line.slice(from));
  return { segments, style };
}

/** The text of a line without anything that steers a terminal. */
export function plainText(line: string): string {
  if (line.includes("\r")) return parseLine(line).segments.map((s) => s.text).join("");
  return line.replace(CONTROL, "").replace(TURNING, "\ufffd");
}

/** Whether a line is what it seems, so it need not be taken apart. */
export function isPlain(line: string): boolean {
  return !/[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/.test(line);
}

/** A style after the parameters of an SGR sequence such as `1;38;5;208`. */
function restyled(style: Style, parameters: string): Style {
  const codes = parameters.split(";").flatMap(codesOf);
  let next = style;
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i]!;
    if (code === 38 || code === 48) {
      const { colour, used } = extended(codes, i + 1);
      i += used;
      if (colour !== undefined) next = { ...next, [code === 38 ? "colour" : "ground"]: colour };
    } else {
      next = simple(next, code);
    }
  }
  return next;
}

/** A parameter may have some of its own after colons: colours (`38:2::1:2:3`), and the kind of an underline. */
function codesOf(parameter: string): number[] {
  const [code = 0, ...own] = parameter.split(":").map(Number);
  // Colours in colons may name a colour space before the three numbers.
  if (code === 38 || code === 48) return own.length > 4 ? [code, own[0]!, ...own.slice(2, 5)] : [code, ...own];
  return [code === 4 && own[0] === 0 ? 24 : code];
}

function simple(style: Style, code: number): Style {
  if (code >= 30 && code <= 37) return { ...style, colour: code - 30 };
  if (code >= 90 && code <= 97) return { ...style, colour: code - 90 + 8 };
  if (code >= 40 && code <= 47) return { ...style, ground: code - 40 };
  if (code >= 100 && code <= 107) return { ...style, ground: code - 100 + 8 };
  switch (code) {
    case 0:
      return PLAIN;
    case 1:
      return { ...style, bold: true };
    case 2:
      return { ...style, dim: true };
    case 3:
      return { ...style, italic: true };
    case 4:
      return { ...style, underline: true };
    case 7:
      return { ...style, inverse: true };
    case 9:
      return { ...style, strike: true };
    case 22:
      return { ...style, bold: false, dim: false };
    case 23:
      return { ...style, italic: false };
    case 24:
      return { ...style, underline: false };
    case 27:
      return { ...style, inverse: false };
    case 29:
      return { ...style, strike: false };
    case 39:
      return { ...style, colour: undefined };
    case 49:
      return { ...style, ground: undefined };
    default:
      return style;
  }
}

/** What follows 38 or 48: `5;n` or `2;r;g;b`. */
function extended(codes: number[], at: number): { colour: Colour | undefined; used: number } {
  const byte = (n: number | undefined) => Math.min(255, Math.max(0, Math.trunc(n ?? 0) || 0));
  if (codes[at] === 5) return { colour: fromTable(byte(codes[at + 1])), used: 2 };
  if (codes[at] === 2) return { colour: [byte(codes[at + 1]), byte(codes[at + 2]), byte(codes[at + 3])], used: 4 };
  return { colour: undefined, used: 0 };
}

/** One of 256 colours: sixteen of the theme, a cube of 216, and 24 greys. */
function fromTable(n: number): Colour {
  if (n < 16) return n;
  if (n >= 232) {
    const grey = 8 + (n - 232) * 10;
    return [grey, grey, grey];
  }
  const level = (k: number) => (k === 0 ? 0 : 55 + 40 * k);
  const cube = n - 16;
  return [level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6)];
}
