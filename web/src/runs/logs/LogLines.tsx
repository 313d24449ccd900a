import { memo, useEffect, useLayoutEffect, useRef, useState, type CSSProperties } from "react";
import { isPlain, parseLine, type Colour, type Style } from "./ansi";
import { marked, type Marked } from "./find";
import type { LogText } from "./logText";
import styles from "./logs.module.css";

/** The height of a line in pixels; the style sheet says the same. */
const HEIGHT = 19;
/** So many lines are drawn beyond those that are seen. */
const SPARE = 20;
/** Who is this near to the end wants to see what follows. */
const NEAR = HEIGHT * 2;

export interface LogLinesProps {
  text: LogText;
  /** Another number when the text has changed. */
  version: number;
  label: string;
  query: string;
  /** The hit that is looked at: its line, counted as hits are, and its place there. */
  current: { line: number; at: number } | null;
  /** Whether the end stays in sight, and who wants to know when the user scrolls away from it. */
  stick: boolean;
  onStick: (stick: boolean) => void;
}

/** The lines of a log, of which only those are drawn that are seen. */
export function LogLines({ text, version, label, query, current, stick, onStick }: LogLinesProps) {
  const box = useRef<HTMLDivElement>(null);
  const [first, setFirst] = useState(0);
  const [room, setRoom] = useState(40);
  const shift = useRef(text.shift);
  const total = text.lines.length;

  useEffect(() => {
    const watcher = new ResizeObserver(([entry]) => setRoom(Math.ceil(entry!.contentRect.height / HEIGHT)));
    watcher.observe(box.current!);
    return () => watcher.disconnect();
  }, []);

  useLayoutEffect(() => {
    const element = box.current!;
    // What is looked at stays where it is when lines are put before it.
    element.scrollTop += (text.shift - shift.current) * HEIGHT;
    shift.current = text.shift;
    if (stick) element.scrollTop = element.scrollHeight;
  }, [text, version, stick]);

  useLayoutEffect(() => {
    if (!current) return;
    const element = box.current!;
    const top = (current.line + text.shift) * HEIGHT;
    const isSeen = top >= element.scrollTop && top + HEIGHT <= element.scrollTop + element.clientHeight;
    if (!isSeen) element.scrollTop = top - element.clientHeight / 2;
    element.querySelector(`.${styles.current}`)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [current, text]);

  function scrolled() {
    const element = box.current!;
    setFirst(Math.floor(element.scrollTop / HEIGHT));
    const isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR;
    if (isAtEnd !== stick) onStick(isAtEnd);
  }

  const from = Math.max(0, Math.min(first, total - room) - SPARE);
  const to = Math.min(total, first + room + SPARE);
  const rows = [];
  for (let i = from; i < to; i++) {
    const line = i - text.shift;
    const at = current?.line === line ? current.at : null;
    rows.push(<Line key={line} line={text.lines[i]!} style={text.styles[i]!} query={query} current={at} />);
  }
  return (
    <div ref={box} className={styles.lines} tabIndex={0} role="region" aria-label={label} onScroll={scrolled}>
      <div className={styles.all} style={{ height: total * HEIGHT, minWidth: `${text.widest}ch` }}>
        <div style={{ transform: `translateY(${from * HEIGHT}px)` }}>{rows}</div>
      </div>
    </div>
  );
}

interface LineProps {
  line: string;
  style: Style;
  query: string;
  current: number | null;
}

const Line = memo(function Line({ line, style, query, current }: LineProps) {
  const segments = isPlain(line) ? [{ text: line, style }] : parseLine(line, style).segments;
  const parts: Marked[] = query ? marked(segments, query, current) : segments;
  return (
    <div className={styles.line}>
      {parts.map((part, i) => {
        const look = lookOf(part.style);
        if (part.hit) {
          return (
            <mark key={i} className={part.hit === "current" ? styles.current : styles.hit}>
              {part.text}
            </mark>
          );
        }
        return look ? (
          <span key={i} style={look}>
            {part.text}
          </span>
        ) : (
          part.text
        );
      })}
    </div>
  );
});

/** A style as the browser knows it; nothing if it is plain. */
function lookOf(style: Style): CSSProperties | undefined {
  const { inverse } = style;
  const colour = inverse ? style.ground : style.colour;
  const ground = inverse ? style.colour : style.ground;
  const look: CSSProperties = {};
  if (colour !== undefined) look.color = ink(colour);
  if (ground !== undefined) look.background = wash(ground);
  if (inverse && ground === undefined) look.background = "var(--line)";
  if (style.bold) look.fontWeight = 700;
  if (style.italic) look.fontStyle = "italic";
  if (style.dim && colour === undefined) look.color = "var(--soft)";
  const lines = [style.underline && "underline", style.strike && "line-through"].filter(Boolean).join(" ");
  if (lines) look.textDecoration = lines;
  return Object.keys(look).length > 0 ? look : undefined;
}

/** Colours a program has chosen may not be readable on our ground, so they are moved towards what is. */
function ink(colour: Colour): string {
  return typeof colour === "number" ? `var(--ansi-${colour})` : `color-mix(in oklab, rgb(${colour.join(" ")}) 40%, var(--ink))`;
}

function wash(colour: Colour): string {
  const full = typeof colour === "number" ? `var(--ansi-${colour})` : `rgb(${colour.join(" ")})`;
  return `color-mix(in oklab, ${full} 22%, var(--paper))`;
}
