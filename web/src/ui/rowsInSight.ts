import { useCallback, useLayoutEffect, useRef, useState, type RefObject } from "react";

/** Rows that are made beyond those in sight, so that scrolling shows no gaps. */
const SPARE = 8;

interface RowsInSight<T extends HTMLElement> {
  element: RefObject<T | null>;
  /** The rows to be made: from the first up to, not including, the last. */
  first: number;
  last: number;
  /** How many rows are seen at once. */
  page: number;
  onScroll: () => void;
  /** Scrolls as little as shows a row. */
  reveal: (row: number) => void;
}

/** Which of many rows of one height are in sight, so that only those are made. */
export function useRowsInSight<T extends HTMLElement>(count: number, rowHeight: number): RowsInSight<T> {
  const element = useRef<T>(null);
  const [range, setRange] = useState({ first: 0, last: 40, page: 24 });
  const look = useCallback(() => {
    const box = element.current;
    if (!box) return;
    const first = Math.max(Math.floor(box.scrollTop / rowHeight) - SPARE, 0);
    const last = Math.ceil((box.scrollTop + box.clientHeight) / rowHeight) + SPARE;
    const page = Math.max(Math.floor(box.clientHeight / rowHeight), 1);
    setRange((before) => (before.first === first && before.last === last && before.page === page ? before : { first, last, page }));
  }, [rowHeight]);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(look);
    if (element.current) observer.observe(element.current);
    return () => observer.disconnect();
  }, [look]);
  useLayoutEffect(look, [look, count]);
  const reveal = useCallback(
    (row: number) => {
      const box = element.current;
      if (!box) return;
      if (row * rowHeight < box.scrollTop) box.scrollTop = row * rowHeight;
      else if ((row + 1) * rowHeight > box.scrollTop + box.clientHeight) box.scrollTop = (row + 1) * rowHeight - box.clientHeight;
      look();
    },
    [rowHeight, look],
  );
  const last = Math.min(range.last, count);
  return { element, first: Math.min(range.first, last), last, page: range.page, onScroll: look, reveal };
}
