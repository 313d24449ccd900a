/** Numbers below 1 that look random and are always the same (Park and Miller). */
export function random(seed = 1): () => number {
  let state = seed;
  return () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647;
  };
}
