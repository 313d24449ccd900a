/** Finds what is within a range of heights, without looking at the rest. What is high is in several bands. */
export class Bands {
  private readonly bands: number[][] = [];
  private readonly seen: Int32Array;
  private round = 0;

  constructor(
    count: number,
    private readonly top: (i: number) => number,
    private readonly bottom: (i: number) => number,
    height: number,
    private readonly size = Math.max(height / 400, 120),
  ) {
    this.seen = new Int32Array(count);
    for (let i = 0; i < count; i++) {
      for (let band = this.band(top(i)); band <= this.band(bottom(i)); band++) (this.bands[band] ??= []).push(i);
    }
  }

  private band(y: number): number {
    return Math.max(Math.floor(y / this.size), 0);
  }

  /** Everything between two heights, each once. */
  within(from: number, to: number, visit: (i: number) => void) {
    this.round += 1;
    const last = Math.min(this.band(to), this.bands.length - 1);
    for (let band = this.band(from); band <= last; band++) {
      for (const i of this.bands[band] ?? []) {
        if (this.seen[i] === this.round) continue;
        this.seen[i] = this.round;
        if (this.top(i) <= to && this.bottom(i) >= from) visit(i);
      }
    }
  }
}
