import "./browserless";
import { expect, test } from "@playwright/test";
import type { Board } from "../../src/api/types";
import { BoardStore } from "../../src/runs/board";
import { news } from "./board";
import { answer, serving } from "./server";

/** A server that says these boards one after the other, and whose events never end. */
function boards(all: (Board | null)[]) {
  const left = [...all];
  return serving(({ path }, signal) => {
    if (path.endsWith("/events")) return new Promise((_, reject) => signal!.addEventListener("abort", () => reject(new Error("aborted"))));
    const next = left.shift();
    return next ? answer(200, [JSON.stringify(next)]) : answer(500, ['{"error": "broken"}']);
  });
}

const first = news([{ chain: 1, state: "running" }], { version: 5, steps: ["align"], kinds: [[0]] });
const chainsOf = (store: BoardStore) => store.snapshot().state?.chains.length;

test("a board asks for what is new since it has looked, and takes that in", async () => {
  const asked = boards([first, news([{ chain: 1, state: "succeeded" }, { chain: 2, state: "running" }], { version: 6 })]);
  const store = new BoardStore(3);
  const stop = store.subscribe(() => undefined);
  await expect.poll(() => chainsOf(store)).toBe(1);
  const { state } = store.snapshot();
  store.want();
  await expect.poll(() => chainsOf(store)).toBe(2);
  expect(store.snapshot().state).toBe(state);
  expect(state!.countsOf(0)).toMatchObject({ succeeded: 1, running: 1 });
  expect(asked.map((a) => a.path).filter((p) => p.includes("board"))).toEqual(["/runs/3/board", "/runs/3/board?after=5&epoch=one"]);
  stop();
});

test("a board of another epoch has nothing to do with what was known", async () => {
  boards([first, news([{ chain: 9, state: "failed" }], { epoch: "two", version: 1, steps: ["other"], kinds: [[0]] })]);
  const store = new BoardStore(3);
  const stop = store.subscribe(() => undefined);
  await expect.poll(() => chainsOf(store)).toBe(1);
  store.want();
  await expect.poll(() => store.snapshot().state?.epoch).toBe("two");
  const { state } = store.snapshot();
  expect(state!.steps).toEqual(["other"]);
  expect(state!.chains.rowOf(1)).toBe(-1);
  expect(state!.countsOf(0)).toMatchObject({ failed: 1, running: 0 });
  stop();
});

test("a board that cannot be asked for keeps what is known, and says why", async () => {
  boards([first, null, news([], { version: 6 })]);
  const store = new BoardStore(3);
  const stop = store.subscribe(() => undefined);
  await expect.poll(() => chainsOf(store)).toBe(1);
  store.want();
  await expect.poll(() => store.snapshot().problem?.message).toBe("broken");
  expect(chainsOf(store)).toBe(1);
  store.want();
  await expect.poll(() => store.snapshot().problem).toBeUndefined();
  stop();
});

test("nothing is asked for of a board that nobody looks at", async () => {
  const asked = boards([first]);
  const store = new BoardStore(3);
  store.subscribe(() => undefined)();
  store.want();
  await new Promise((done) => setTimeout(done, 50));
  expect(asked.filter((a) => a.path.includes("board"))).toEqual([]);
});
