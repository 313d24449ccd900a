/** What is drawn on lanes: columns of equal length, in any order. Times are in milliseconds from any origin. */
export interface LanesData {
  /** Names of the lanes, from top to bottom. */
  lanes: string[];
  lane: Int32Array;
  start: Float64Array;
  /** Bars that go on end now. */
  end: Float64Array;
  /** Which of `colours`. */
  colour: Int32Array;
  /** One of the `MARK` values. */
  mark: Uint8Array;
  /** With the names that a legend shows. */
  colours: { name: string; colour: string }[];
}

export const MARK = { none: 0, failed: 1, lost: 2, retried: 3, vain: 4 } as const;

export interface LanesProps {
  data: LanesData;
  /** What the picture is, for those who cannot see it. */
  label: string;
  /** Says what a bar is, in a few words. */
  describe: (bar: number) => string;
  selected?: number | null;
  onSelect?: (bar: number | null) => void;
  /** Bars to be pointed out, the others fade. */
  highlight?: Set<number>;
  /** The end of the time axis, where several pictures are to be compared; the last bar if none is given. */
  until?: number;
  height?: number;
}

/** Who was busy with what when: a lane each, zoomable. */
export function Lanes(props: LanesProps) {
  return <div role="img" aria-label={props.label} />;
}
