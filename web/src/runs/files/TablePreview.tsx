import { useEffect, useMemo, useState } from "react";
import { Button } from "../../ui/parts";
import { count } from "../../ui/format";
import { guessSeparator, parseTable } from "./csv";
import { readPart, type Part } from "./part";
import styles from "./files.module.css";

/** So many rows are shown of a table, and so many of them at a time. */
const ROWS = 500;
const PAGE = 50;
/** More columns are not shown. */
const COLUMNS = 60;
/** So much is read for that. */
const MOST = 512 << 10;

/** The beginning of a table. */
export function TablePreview({ path, name, separator, part }: { path: string; name: string; separator: string | null; part: Part }) {
  const [held, setHeld] = useState(part);
  const [page, setPage] = useState(0);

  const isCut = part.total !== null && part.total > part.bytes.length;
  useEffect(() => {
    if (!isCut) return;
    const abort = new AbortController();
    readPart(path, 0, MOST, abort.signal).then(setHeld, () => undefined);
    return () => abort.abort();
  }, [path, isCut]);

  const { rows, more } = useMemo(() => {
    const isWhole = held.total === null || held.bytes.length >= held.total;
    const text = new TextDecoder().decode(held.bytes);
    return parseTable(text, separator ?? guessSeparator(text), ROWS + 1, isWhole);
  }, [held, separator]);

  const [header = [], ...body] = rows;
  const columns = Math.min(COLUMNS, Math.max(header.length, ...body.map((r) => r.length)));
  const pages = Math.max(1, Math.ceil(body.length / PAGE));
  const shown = body.slice(page * PAGE, (page + 1) * PAGE);
  const numbers = Array.from({ length: columns }, (_, i) => i);
  const isNumber = numbers.map((i) => shown.length > 0 && shown.every((row) => /^\s*-?[\d.]+(e[+-]?\d+)?\s*$/i.test(row[i] ?? "")));
  return (
    <>
      <div className={styles.table} tabIndex={0} role="region" aria-label={`Contents of ${name}`}>
        <table>
          <thead>
            <tr>
              <th className="number">
                <span className="visually-hidden">Row</span>
              </th>
              {numbers.map((i) => (
                <th key={i} className={isNumber[i] ? "number" : undefined}>
                  {header[i] ?? ""}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((row, r) => (
              <tr key={r}>
                <td className="number soft">{page * PAGE + r + 1}</td>
                {numbers.map((i) => (
                  <td key={i} className={isNumber[i] ? "number" : undefined}>
                    {row[i] ?? ""}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div className={styles.pages}>
        <span className="soft">
          {more ? `The first ${count(body.length, "row")}` : count(body.length, "row")}
          {header.length > COLUMNS && `, the first ${COLUMNS} of ${header.length} columns`}
        </span>
        {pages > 1 && (
          <>
            <Button onClick={() => setPage(page - 1)} disabled={page === 0} aria-label="Previous rows">
              ←
            </Button>
            <span>
              {page + 1} of {pages}
            </span>
            <Button onClick={() => setPage(page + 1)} disabled={page + 1 >= pages} aria-label="Next rows">
              →
            </Button>
          </>
        )}
      </div>
    </>
  );
}
