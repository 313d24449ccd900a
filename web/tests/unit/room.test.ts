import { expect, test } from "@playwright/test";
import { Refusal, type RoomEvent } from "../../src/compose/live/protocol";
import { Room } from "../../src/compose/live/room";
import type { Composition, Node } from "../../src/compose/model/types";
import { workflow } from "./compositions";
import { away, composition, FakeMemory, FakeWorld, joined, locked, runs, setRun, state, turn, UNIT } from "./world";

/** Somebody else has changed the task. */
function changed(seq: number, run: string): RoomEvent {
  return { event: "changed", seq, time: 0, user: "ben", session: 9, op: 1, changes: [setRun(run)], units: [UNIT] };
}

test("who joins sees everything, and remembers the session", async () => {
  const people = [{ session: 7, user: "anna" }, { session: 9, user: "ben", cursor: { x: 1, y: 2 } }];
  const locks = [{ session: 9, user: "ben", unit: UNIT, mode: "X", since: 5000 } as const];
  const { room, world, memory } = await joined({ seq: 3, people, locks, versions: { [UNIT]: 3 } });
  expect(room.view).toMatchObject({ line: "live", session: 7, role: "editor", seq: 3, versions: { [UNIT]: 3 }, held: {}, pending: 0 });
  expect(room.view!.people).toEqual([{ session: 7, user: "anna" }, { session: 9, user: "ben" }]);
  expect(room.view!.locks[0]!.at).toBe(world.time - 5000);
  expect([...room.cursors]).toEqual([[9, { x: 1, y: 2 }]]);
  expect(memory.session).toBe(7);
});

test("operations go one after the other, with numbers that grow", async () => {
  const { room, world } = await joined({ last_op: 4 });
  const first = room.do([setRun("b")]);
  const second = room.do([setRun("c")]);
  await turn();
  expect(world.line.all("do").map((d) => d.op)).toEqual([5]);
  expect(room.view!.pending).toBe(2);
  // It is not shown before the server has agreed.
  expect(runs(room.view!.composition)).toBe("first");
  await world.line.answer("do", { seq: 1 });
  expect(await first).toBe(1);
  expect(runs(room.view!.composition)).toBe("b");
  expect(room.view!.versions[UNIT]).toBe(1);
  expect(world.line.all("do").map((d) => d.op)).toEqual([5, 6]);
  await world.line.answer("do", { seq: 2 });
  expect(await second).toBe(2);
  expect(runs(room.view!.composition)).toBe("c");
  expect(room.view!.pending).toBe(0);
});

test("an operation that was refused changes nothing, and the next one goes on", async () => {
  const { room, world } = await joined();
  const first = room.do([setRun("b")]).catch((error: unknown) => error);
  const second = room.do([setRun("c")]);
  await world.line.refuse("do", { code: "invalid", message: "no" });
  expect(await first).toBeInstanceOf(Refusal);
  expect(runs(room.view!.composition)).toBe("first");
  await world.line.answer("do", { seq: 1 });
  expect(await second).toBe(1);
  expect(runs(room.view!.composition)).toBe("c");
});

test("an operation that was done though its answer was lost is not said again", async () => {
  const { room, world } = await joined();
  const done = room.do([setRun("b")]);
  await turn();
  world.line.cut();
  expect(room.view).toMatchObject({ line: "reconnecting", pending: 1 });
  await world.pass(200);
  await world.line.join({ last_op: 1, seq: 1, composition: composition("b"), versions: { [UNIT]: 1 } });
  expect(await done).toBe(1);
  expect(world.line.all("do")).toEqual([]);
  expect(room.view).toMatchObject({ line: "live", pending: 0, seq: 1 });
  expect(runs(room.view!.composition)).toBe("b");
});

test("an operation that was not done is said again with the same number, before those after it", async () => {
  const { room, world } = await joined();
  const first = room.do([setRun("b")], { note: "why" });
  const second = room.do([setRun("c")]);
  await turn();
  const [before] = world.line.all("do");
  await away(world);
  const third = room.do([setRun("d")]);
  await world.line.join();
  const { id: _, ...again } = world.line.last("do");
  const { id: __, ...said } = before!;
  expect(again).toEqual(said);
  expect(again).toMatchObject({ op: 1, note: "why", changes: [setRun("b")] });
  for (const seq of [1, 2, 3]) await world.line.answer("do", { seq });
  expect(world.line.all("do").map((d) => d.op)).toEqual([1, 2, 3]);
  expect(await Promise.all([first, second, third])).toEqual([1, 2, 3]);
  expect(runs(room.view!.composition)).toBe("d");
});

test("what the server calls replayed was done, once", async () => {
  const { room, world } = await joined();
  const first = room.do([setRun("b")]);
  const second = room.do([setRun("c")]);
  await turn();
  await world.line.refuse("do", { code: "replayed", message: "known" });
  expect(await first).toBe(0);
  expect(room.view!.pending).toBe(1);
  expect(world.line.all("do").map((d) => d.op)).toEqual([1, 2]);
  await world.line.answer("do", { seq: 2 });
  // Somebody else, or the first one, is in between, so everything is looked at.
  await world.line.answer("state", { state: state({ last_op: 2, seq: 2, composition: composition("c") }) });
  expect(await second).toBe(2);
  expect(runs(room.view!.composition)).toBe("c");
});

test("another instance that takes over on the same line hears what was not answered", async () => {
  const { room, world } = await joined();
  const first = room.do([setRun("b")]);
  await turn();
  await world.line.join();
  expect(world.line.all("do").map((d) => d.op)).toEqual([1, 1]);
  await world.line.answer("do", { seq: 1 });
  expect(await first).toBe(1);
  expect(room.view!.pending).toBe(0);
});

test("nothing is lost if another instance takes over while everything is looked at", async () => {
  const { room, world } = await joined();
  const first = room.do([setRun("b")]);
  const second = room.do([setRun("c")]);
  const third = room.do([setRun("d")]);
  // The answer has a gap before it, so the state is asked for, and that answer never comes.
  await world.line.answer("do", { seq: 5 });
  expect(world.line.all("state")).toHaveLength(1);
  await world.line.join({ last_op: 1, seq: 5, composition: composition("b") });
  expect(await first).toBe(5);
  expect(room.view!.pending).toBe(2);
  expect(world.line.all("do").map((d) => d.op)).toEqual([1, 2]);
  await world.line.answer("do", { seq: 6 });
  await world.line.answer("do", { seq: 7 });
  expect(await Promise.all([second, third])).toEqual([6, 7]);
  expect(world.line.all("do").map((d) => d.op)).toEqual([1, 2, 3]);
  expect(runs(room.view!.composition)).toBe("d");
});

test("operations from before a reload are said again with their numbers, and new ones come after them", async () => {
  const kept = { op: 3, changes: [setRun("kept")], note: "", seen: {}, units: [] };
  const memory = new FakeMemory(7, [kept]);
  const { room, world, notices } = await joined({ last_op: 2 }, memory);
  expect(world.lines[0]!.session).toBe(7);
  expect(world.line.last("do")).toMatchObject({ op: 3, changes: [setRun("kept")] });
  void room.do([setRun("new")]);
  expect(memory.pending.map((p) => p.op)).toEqual([3, 4]);
  await world.line.refuse("do", { code: "invalid", message: "too late" });
  expect(notices).toEqual([{ kind: "refused", message: "too late" }]);
  expect(world.line.last("do").op).toBe(4);
  await world.line.answer("do", { seq: 1 });
  expect(memory.pending).toEqual([]);
});

test("operations from before a reload that had arrived are not said again", async () => {
  const memory = new FakeMemory(7, [{ op: 3, changes: [setRun("kept")], note: "", seen: {}, units: [] }]);
  const { room, world } = await joined({ last_op: 3, seq: 8, composition: composition("kept") }, memory);
  expect(world.line.all("do")).toEqual([]);
  expect(memory.pending).toEqual([]);
  expect(room.view!.pending).toBe(0);
});

test("locks are asked for again before what counts on them, which is said with the new number", async () => {
  const { room, world } = await joined();
  await locked(world, room, 11);
  expect(room.view!.held).toEqual({ [UNIT]: 11 });
  void room.do([setRun("b")], { units: [UNIT] });
  await turn();
  expect(world.line.last("do").tokens).toEqual({ [UNIT]: 11 });
  await away(world);
  await world.line.join();
  expect(world.line.heard.map((h) => h.type)).toEqual(["lock"]);
  expect(world.line.last("lock").wants).toEqual([{ unit: UNIT, mode: "X", path: ["workflows/main"] }]);
  await world.line.answer("lock", { locks: { [UNIT]: 22 } });
  expect(world.line.last("do")).toMatchObject({ op: 1, tokens: { [UNIT]: 22 } });
});

test("a lock that somebody else got meanwhile is said to be lost", async () => {
  const { room, world, notices } = await joined();
  await locked(world, room);
  await away(world);
  await world.line.join();
  await world.line.refuse("lock", { code: "locked", message: "taken" });
  expect(room.view!.held).toEqual({});
  expect(notices).toEqual([{ kind: "lost", unit: UNIT, why: "away" }]);
});

test("a lock that expires is lost, one that was given back is not told", async () => {
  const { room, world, notices } = await joined();
  await locked(world, room);
  await world.line.say({ event: "released", session: 7, unit: UNIT, why: "expired" });
  expect(room.view!.held).toEqual({});
  expect(notices).toEqual([{ kind: "lost", unit: UNIT, why: "expired" }]);
  await locked(world, room);
  await world.line.say({ event: "released", session: 7, unit: UNIT, why: "wanted" });
  expect(room.view!.held).toEqual({});
  expect(notices).toHaveLength(1);
  await locked(world, room);
  room.release(UNIT);
  expect(world.line.last("release").units).toEqual([UNIT]);
  expect(room.view!.held).toEqual({});
});

test("who waits for a lock gets it when it is let go, also after coming back", async () => {
  const { room, world } = await joined();
  let isMine = false;
  void room.lock(UNIT, [], true).then(() => (isMine = true));
  const blockers = [{ session: 9, user: "ben", unit: UNIT, mode: "X", since: 0 } as const];
  await world.line.answer("lock", { waits: { position: 2, blockers } });
  expect(room.view!.waiting).toEqual({ unit: UNIT, position: 2, blockers });
  await away(world);
  await world.line.join();
  expect(world.line.last("lock").wait).toBe(true);
  await world.line.answer("lock", { waits: { position: 1, blockers } });
  expect(isMine).toBe(false);
  await world.line.say({ event: "locked", session: 7, user: "anna", unit: UNIT, mode: "X" });
  expect(world.line.last("lock").wait).toBe(false);
  await world.line.answer("lock", { locks: { [UNIT]: 5 } });
  expect(isMine).toBe(true);
  expect(room.view).toMatchObject({ held: { [UNIT]: 5 }, waiting: null });
});

test("who does not wait any more says so", async () => {
  const { room, world } = await joined();
  const lock = room.lock(UNIT, [], true).catch((error: unknown) => error);
  await world.line.answer("lock", { waits: { position: 1, blockers: [] } });
  room.cancel();
  expect(world.line.all("cancel")).toHaveLength(1);
  expect(await lock).toBeInstanceOf(Error);
  expect(room.view!.waiting).toBeNull();
});

test("versions that were counted anew do not make a conflict where nothing has changed", async () => {
  const { room, world } = await joined({ seq: 40, versions: { [UNIT]: 40 } });
  void room.do([setRun("mine")], { units: [UNIT], seen: { [UNIT]: 40 } });
  await turn();
  await away(world);
  await world.line.join({ seq: 2, versions: { [UNIT]: 2 } });
  expect(world.line.last("do").seen).toEqual({ [UNIT]: 2 });
});

test("a version that somebody else has made meanwhile stays unseen", async () => {
  const { room, world } = await joined({ seq: 1, versions: { [UNIT]: 1 } });
  void room.do([setRun("mine")], { units: [UNIT], seen: { [UNIT]: 1 } });
  await turn();
  await away(world);
  await world.line.join({ seq: 2, versions: { [UNIT]: 2 }, composition: composition("theirs") });
  expect(world.line.last("do").seen).toEqual({ [UNIT]: 1 });
});

test("what others change is shown, and each change once", async () => {
  const { room, world } = await joined();
  await world.line.say(changed(1, "b"));
  expect(runs(room.view!.composition)).toBe("b");
  expect(room.view).toMatchObject({ seq: 1, versions: { [UNIT]: 1 } });
  await world.line.say(changed(1, "again"));
  expect(runs(room.view!.composition)).toBe("b");
});

test("after a gap everything is looked at, and what comes meanwhile is not mixed in", async () => {
  const { room, world } = await joined();
  await world.line.say(changed(5, "five"));
  expect(runs(room.view!.composition)).toBe("first");
  await world.line.say(changed(6, "six"));
  expect(world.line.all("state")).toHaveLength(1);
  await world.line.answer("state", { state: state({ last_op: 0, seq: 6, composition: composition("six") }) });
  expect(runs(room.view!.composition)).toBe("six");
  await world.line.say(changed(7, "seven"));
  expect(runs(room.view!.composition)).toBe("seven");
});

test("a node is drawn where it was moved to before the server has answered", async () => {
  const node: Node = { workflow: "part", x: 0, y: 0 };
  const main = workflow({ kind: "graph", nodes: { n: node }, links: {} });
  const graph: Composition = { name: "", root: "main", workflows: { main, part: composition("x").workflows["main"]! } };
  const { room, world } = await joined({ composition: graph });
  const nodeNow = () => {
    const { body } = room.view!.composition.workflows["main"]!;
    return body.kind === "graph" ? body.nodes["n"] : null;
  };
  const move = room.do([{ change: "move-node", workflow: "main", id: "n", x: 30, y: 40 }]).catch(() => undefined);
  expect(nodeNow()).toMatchObject({ x: 30, y: 40 });
  await world.line.refuse("do", { code: "not-allowed", message: "no" });
  await move;
  expect(nodeNow()).toMatchObject({ x: 0, y: 0 });
});

test("parts that come with what replaces everything are known by the new version", async () => {
  const { room, world } = await joined();
  const other: Composition = { ...composition("new"), root: "other", workflows: { other: composition("new").workflows["main"]! } };
  const done = room.do([{ change: "replace", composition: other }]);
  await world.line.answer("do", { seq: 1 });
  await done;
  expect(room.view!.composition).toEqual(other);
  expect(room.view!.versions["workflows/other/task"]).toBe(1);
});

test("what is taken back is looked at anew, after everything said before was answered", async () => {
  const { room, world } = await joined();
  void room.do([setRun("b")]);
  const undone = room.turn({ type: "undo", skip: false });
  await turn();
  expect(world.line.all("undo")).toEqual([]);
  await world.line.answer("do", { seq: 1 });
  expect(world.line.all("undo")).toHaveLength(1);
  await world.line.answer("undo", { seq: 2 });
  await world.line.answer("state", { state: state({ last_op: 1, seq: 2, composition: composition("first") }) });
  await undone;
  expect(runs(room.view!.composition)).toBe("first");
  expect(room.view!.seq).toBe(2);
});

test("others see a pointer at most twenty times a second, and where it was last", async () => {
  const { room, world } = await joined();
  for (let x = 0; x < 10; x++) room.point({ x, y: 0 });
  expect(world.line.all("point")).toEqual([]);
  await world.pass(50);
  expect(world.line.all("point").map((p) => p.cursor)).toEqual([{ x: 9, y: 0 }]);
});

test("who comes and goes is seen, with the pointer", async () => {
  const { room, world } = await joined();
  await world.line.say({ event: "joined", session: 9, user: "ben" });
  await world.line.say({ event: "pointed", session: 9, cursor: { x: 1, y: 1 } });
  expect(room.view!.people).toEqual([{ session: 9, user: "ben" }]);
  expect(room.cursors.has(9)).toBe(true);
  await world.line.say({ event: "left", session: 9 });
  expect(room.view!.people).toEqual([]);
  expect(room.cursors.has(9)).toBe(false);
});

test("who leaves forgets the session, but not what is unsaved", async () => {
  const { room, memory } = await joined();
  room.leave();
  expect(memory.session).toBeNull();
  const world = new FakeWorld();
  const kept = new FakeMemory();
  const other = new Room(world, kept, () => undefined);
  await world.line.join();
  void other.do([setRun("b")]).catch(() => undefined);
  other.leave();
  expect(kept).toMatchObject({ session: 7, pending: [{ op: 1 }] });
});

test("a line that is lost while locks are asked for again leaves everything to the next one", async () => {
  const { room, world } = await joined();
  await locked(world, room);
  let isMine = false;
  void room.lock("settings", [], true).then(() => (isMine = true), () => undefined);
  await world.line.answer("lock", { waits: { position: 1, blockers: [] } });
  void room.do([setRun("b")], { units: [UNIT] });
  await turn();
  await away(world);
  await world.line.join();
  // The lock was asked for, but before it is granted another instance takes over on the same line.
  await world.line.join();
  expect(world.line.all("do")).toEqual([]);
  expect(world.line.all("lock").map((l) => l.wants[0]!.unit)).toEqual([UNIT, UNIT]);
  await away(world);
  await world.line.join();
  await world.line.answer("lock", { locks: { [UNIT]: 33 } });
  expect(world.line.last("do")).toMatchObject({ op: 1, tokens: { [UNIT]: 33 } });
  expect(world.line.last("lock")).toMatchObject({ wait: true, wants: [{ unit: "settings" }] });
  await world.line.answer("lock", { locks: { settings: 34 } });
  expect(isMine).toBe(true);
});
