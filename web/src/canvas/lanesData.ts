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
