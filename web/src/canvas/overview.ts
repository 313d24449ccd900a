import type { Packed } from "./packing";
import type { Span } from "./span";

const BINS = 600;

/** How many bars there are at a time, in equal pieces of it. */
export interface Overview {
  span: Span;
  busy: Float32Array;
  most: number;
}

/** Computed in one pass: a bar adds to the pieces at its ends what it covers of them, and one to all in between. */
export function overview(packed: Packed, span: Span): Overview {
  const busy = new Float32Array(BINS);
  const steps = new Float32Array(BINS + 1);
  const scale = BINS / Math.max(span.to - span.from, 1e-9);
  for (let i = 0; i < packed.bar.length; i++) {
    const left = (packed.start[i]! - span.from) * scale;
    const right = Math.min((packed.end[i]! - span.from) * scale, BINS);
    const first = Math.min(Math.max(Math.floor(left), 0), BINS - 1);
    const last = Math.min(Math.max(Math.floor(right), 0), BINS - 1);
    if (first === last) {
      busy[first]! += right - left;
    } else {
      busy[first]! += first + 1 - left;
      busy[last]! += right - last;
      steps[first + 1]! += 1;
      steps[last]! -= 1;
    }
  }
  let level = 0;
  let most = 0;
  for (let bin = 0; bin < BINS; bin++) {
    level += steps[bin]!;
    busy[bin]! += level;
    most = Math.max(most, busy[bin]!);
  }
  return { span, busy, most };
}
