/** Numbers by their keys, smallest first. */
export class Heap {
  private readonly keys: number[] = [];
  private readonly values: number[] = [];

  get size(): number {
    return this.keys.length;
  }

  /** The smallest key. */
  get least(): number {
    return this.keys[0] ?? Infinity;
  }

  push(key: number, value: number) {
    const { keys, values } = this;
    let at = keys.length;
    keys.push(key);
    values.push(value);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (keys[parent]! <= key) break;
      keys[at] = keys[parent]!;
      values[at] = values[parent]!;
      at = parent;
    }
    keys[at] = key;
    values[at] = value;
  }

  /** Takes the value with the smallest key. There must be one. */
  pop(): number {
    const { keys, values } = this;
    const taken = values[0]!;
    const key = keys.pop()!;
    const value = values.pop()!;
    const size = keys.length;
    if (size === 0) return taken;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= size) break;
      if (child + 1 < size && keys[child + 1]! < keys[child]!) child += 1;
      if (keys[child]! >= key) break;
      keys[at] = keys[child]!;
      values[at] = values[child]!;
      at = child;
    }
    keys[at] = key;
    values[at] = value;
    return taken;
  }
}
