/** The rows of a table in a text, and whether there are more than were asked for. */
export interface Rows {
  rows: string[][];
  more: boolean;
}

/**
 * Reads comma-separated values as RFC 4180 has them: fields in quotes may contain separators, line breaks and doubled quotes. Of a text
 * that is only the beginning of a file, the last row is left out because it may go on.
 */
export function parseTable(text: string, separator: string, most: number, isWhole: boolean): Rows {
  const rows: string[][] = [];
  let row: string[] = [];
  let field = "";
  let isQuoted = false;
  const endField = () => {
    row.push(field);
    field = "";
  };
  const endRow = () => {
    endField();
    // An empty line is no row.
    if (row.length > 1 || row[0] !== "") rows.push(row);
    row = [];
  };
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    if (isQuoted) {
      if (c !== '"') field += c;
      else if (text[i + 1] === '"') field += text[++i];
      else isQuoted = false;
    } else if (c === '"' && field === "") {
      isQuoted = true;
    } else if (c === separator) {
      endField();
    } else if (c === "\n" || c === "\r") {
      if (c === "\r" && text[i + 1] === "\n") i++;
      endRow();
      if (rows.length > most) return { rows: rows.slice(0, most), more: true };
    } else {
      field += c;
    }
  }
  if (isWhole && (field !== "" || row.length > 0)) endRow();
  return { rows: rows.slice(0, most), more: !isWhole || rows.length > most };
}

/** The character that most probably separates fields: the one that occurs most often in the first line, outside quotes. */
export function guessSeparator(text: string): string {
  const line = text.slice(0, 10_000).replace(/"(?:[^"]|"")*"/g, "").split(/[\r\n]/, 1)[0] ?? "";
  const counted = [",", ";", "\t", "|"].map((c) => ({ c, n: line.split(c).length - 1 }));
  return counted.reduce((best, other) => (other.n > best.n ? other : best)).c;
}
