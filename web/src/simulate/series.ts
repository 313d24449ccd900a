import { colourOf } from "../ui/colours";

/** How a policy is drawn: by a colour, and by a mark for those who do not see it. */
export interface Series {
  policy: string;
  colour: string;
  /** The outline of the mark, around the origin. */
  mark: string;
}

const MARKS = [
  "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z",
  "M-3.6,-3.6h7.2v7.2h-7.2z",
  "M0,-4.8L4.6,3.4H-4.6z",
  "M0,-5L5,0L0,5L-5,0z",
  "M0,4.8L4.6,-3.4H-4.6z",
  "M-1.4,-4.6h2.8v3.2h3.2v2.8h-3.2v3.2h-2.8v-3.2h-3.2v-2.8h3.2z",
];

/** Policies that the server knows look the same in every comparison; others come after them. */
export function seriesOf(policies: string[], known: string[]): Series[] {
  const all = [...known, ...policies.filter((p) => !known.includes(p))];
  return policies.map((policy) => {
    const number = all.indexOf(policy);
    return { policy, colour: colourOf(number), mark: MARKS[number % MARKS.length]! };
  });
}
