import { useEffect, useMemo, useRef } from "react";
import { token } from "../ui/colours";
import { useTheme } from "../app/theme";
import { classes, Dot } from "../ui/parts";
import { MARK, type LanesData } from "./lanesData";
import { drawMark } from "./marks";
import styles from "./canvas.module.css";

const WORDS: [number, string][] = [
  [MARK.failed, "failed"],
  [MARK.lost, "agent lost"],
  [MARK.retried, "tried again"],
  [MARK.vain, "in vain"],
];

/** What colours and signs mean. A click on a colour lets the others fade. */
export function Legend({ data, only, onOnly }: { data: LanesData; only: number | null; onOnly: (colour: number | null) => void }) {
  const used = useMemo(() => {
    const marks = new Set<number>();
    const colours = new Set<number>();
    for (const mark of data.mark) marks.add(mark);
    for (const colour of data.colour) colours.add(colour);
    return { marks, colours };
  }, [data]);
  return (
    <div className={styles.legend} role="group" aria-label="Legend">
      {data.colours.map(
        ({ name, colour }, index) =>
          (used.colours.has(index) || only === index) && (
            <button
              key={index}
              type="button"
              className={classes(styles.entry, only !== null && only !== index && styles.faded)}
              aria-pressed={only === index}
              title={only === index ? "Show all colours again" : "Let the others fade"}
              onClick={() => onOnly(only === index ? null : index)}
            >
              <Dot colour={colour} /> {name}
            </button>
          ),
      )}
      {WORDS.filter(([mark]) => used.marks.has(mark)).map(([mark, word]) => (
        <span key={mark} className={styles.sign}>
          <Sign mark={mark} /> {word}
        </span>
      ))}
    </div>
  );
}

function Sign({ mark }: { mark: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  useEffect(() => {
    const context = canvas.current!.getContext("2d")!;
    context.setTransform(2, 0, 0, 2, 0, 0);
    context.clearRect(0, 0, 14, 14);
    if (mark !== MARK.vain) {
      drawMark(context, mark, 7, 7, 12, token(mark === MARK.failed ? "state-failed" : "ink"), token("ground"));
      return;
    }
    context.strokeStyle = token("soft");
    context.lineWidth = 1.6;
    context.beginPath();
    for (const x of [-8, -3, 2, 7]) {
      context.moveTo(x, 13);
      context.lineTo(x + 12, 1);
    }
    context.stroke();
  }, [mark, theme]);
  return <canvas ref={canvas} width={28} height={28} className={styles.signPicture} aria-hidden="true" />;
}
