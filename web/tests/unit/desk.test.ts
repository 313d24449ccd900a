import { expect, test } from "@playwright/test";
import { Desk, type Drawer } from "../../src/compose/live/desk";
import type { State } from "../../src/compose/live/protocol";
import { away, composition, FakeMemory, joined, setRun, state, UNIT } from "./world";

type Drafts = ReturnType<Drawer["load"]>;

class FakeDrawer implements Drawer {
  constructor(public drafts: Drafts = {}) {}

  load() {
    return this.drafts;
  }

  keep(drafts: Drafts) {
    this.drafts = drafts;
  }
}

async function seated(known: Partial<State> = {}, drafts: Drafts = {}) {
  const { world, room, notices } = await joined(known, new FakeMemory());
  const drawer = new FakeDrawer(drafts);
  const desk = new Desk(room, drawer, () => world.now());
  return { world, room, desk, drawer, notices };
}

/** A desk at which the task was locked and something was typed. */
async function typed(text = "mine") {
  const all = await seated({ seq: 4, versions: { [UNIT]: 4 } });
  all.desk.enter(UNIT, []);
  await all.world.line.answer("lock", { locks: { [UNIT]: 1 } });
  all.desk.edit(UNIT, setRun(text), []);
  return all;
}

test("who comes to a part locks it, and who goes without a change gives it back", async () => {
  const { world, desk } = await seated();
  desk.enter(UNIT, ["workflows/main"]);
  expect(desk.part(UNIT).status).toBe("asking");
  expect(world.line.last("lock")).toMatchObject({ wait: false, wants: [{ unit: UNIT, path: ["workflows/main"] }] });
  await world.line.answer("lock", { locks: { [UNIT]: 1 } });
  expect(desk.part(UNIT).status).toBe("mine");
  desk.leave(UNIT);
  expect(world.line.all("do")).toEqual([]);
  expect(world.line.last("release").units).toEqual([UNIT]);
  expect(desk.part(UNIT).status).toBe("free");
});

test("what was typed is saved when its author goes elsewhere, and the part is let go", async () => {
  const { world, desk, drawer } = await typed();
  expect(desk.unsaved).toBe(1);
  expect(desk.isBusy(UNIT)).toBe(true);
  expect(drawer.drafts).toEqual({ [UNIT]: { draft: setRun("mine"), seen: 4 } });
  desk.leave(UNIT);
  expect(desk.part(UNIT).status).toBe("saving");
  expect(world.line.last("do")).toMatchObject({ changes: [setRun("mine")], seen: { [UNIT]: 4 }, tokens: { [UNIT]: 1 } });
  expect(world.line.all("release")).toEqual([]);
  await world.line.answer("do", { seq: 5 });
  expect(desk.part(UNIT).status).toBe("free");
  expect(drawer.drafts).toEqual({});
  expect(world.line.last("release").units).toEqual([UNIT]);
});

test("who saves and stays keeps the lock", async () => {
  const { world, desk } = await typed();
  void desk.save(UNIT);
  await world.line.answer("do", { seq: 5 });
  expect(desk.part(UNIT)).toMatchObject({ status: "mine", draft: null });
  expect(world.line.all("release")).toEqual([]);
});

test("what is typed as it was is no draft", async () => {
  const { desk } = await typed();
  desk.edit(UNIT, setRun("first"), []);
  expect(desk.part(UNIT).draft).toBeNull();
  expect(desk.unsaved).toBe(0);
});

test("what is clicked before the lock is granted counts when it is", async () => {
  const { world, desk } = await seated();
  desk.edit(UNIT, setRun("early"), []);
  desk.edit(UNIT, setRun("later"), []);
  expect(desk.part(UNIT).status).toBe("asking");
  await world.line.answer("lock", { locks: { [UNIT]: 1 } });
  expect(desk.part(UNIT)).toMatchObject({ status: "mine", draft: setRun("later") });
});

test("a part that others have can be waited for", async () => {
  const { world, desk } = await seated();
  desk.enter(UNIT, []);
  await world.line.refuse("lock", { code: "locked", message: "ben edits it" });
  expect(desk.part(UNIT)).toMatchObject({ status: "refused", refused: { message: "ben edits it" } });
  void desk.lock(UNIT, true);
  expect(desk.part(UNIT).status).toBe("waiting");
  await world.line.answer("lock", { waits: { position: 1, blockers: [] } });
  await world.line.say({ event: "locked", session: 7, user: "anna", unit: UNIT, mode: "X" });
  await world.line.answer("lock", { locks: { [UNIT]: 2 } });
  expect(desk.part(UNIT).status).toBe("mine");
});

test("who does not wait any more is free again", async () => {
  const { world, desk } = await seated();
  void desk.lock(UNIT, true);
  await world.line.answer("lock", { waits: { position: 1, blockers: [] } });
  desk.cancel(UNIT);
  expect(world.line.all("cancel")).toHaveLength(1);
  expect(desk.part(UNIT).status).toBe("free");
});

test("a lock that is lost leaves what was typed", async () => {
  const { world, desk, drawer } = await typed();
  await world.line.say({ event: "released", session: 7, unit: UNIT, why: "broken" });
  expect(desk.part(UNIT)).toMatchObject({ status: "lost", draft: setRun("mine") });
  // One can go on typing, and it stays made on what was there before others changed it.
  await world.line.say({ event: "changed", seq: 5, time: 0, user: "ben", session: 9, op: 1, changes: [setRun("theirs")], units: [UNIT] });
  desk.edit(UNIT, setRun("more"), []);
  expect(drawer.drafts[UNIT]).toEqual({ draft: setRun("more"), seen: 4 });
  desk.leave(UNIT);
  expect(desk.part(UNIT).draft).toEqual(setRun("more"));
});

test("a lock that somebody got while the connection was lost leaves what was typed", async () => {
  const { world, desk } = await typed();
  await away(world);
  expect(desk.part(UNIT).status).toBe("mine");
  await world.line.join({ seq: 5, versions: { [UNIT]: 5 }, composition: composition("theirs") });
  await world.line.refuse("lock", { code: "locked", message: "ben has it" });
  expect(desk.part(UNIT)).toMatchObject({ status: "lost", draft: setRun("mine"), seen: 4 });
  // With the lock back, it turns out that the other one has saved.
  void desk.lock(UNIT, false);
  await world.line.answer("lock", { locks: { [UNIT]: 9 } });
  expect(desk.part(UNIT)).toMatchObject({ status: "conflict", draft: setRun("mine"), refused: { code: "stale" } });
});

test("a lock that comes back with the connection goes on as if nothing had been", async () => {
  const { world, desk } = await typed();
  await away(world);
  await world.line.join({ seq: 4, versions: { [UNIT]: 4 } });
  await world.line.answer("lock", { locks: { [UNIT]: 12 } });
  expect(desk.part(UNIT)).toMatchObject({ status: "mine", draft: setRun("mine") });
  desk.leave(UNIT);
  expect(world.line.last("do").tokens).toEqual({ [UNIT]: 12 });
});

test("what is stale shows mine and theirs, and mine counts if its author insists", async () => {
  const { world, desk } = await typed();
  void desk.save(UNIT);
  const theirs = [{ unit: UNIT, version: 6, by: "ben", content: { action: { run: "theirs" } } }];
  await world.line.refuse("do", { code: "stale", message: "changed", theirs });
  expect(desk.part(UNIT)).toMatchObject({ status: "conflict", draft: setRun("mine"), refused: { theirs } });
  const insisted = desk.insist(UNIT);
  expect(world.line.last("do")).toMatchObject({ op: 2, changes: [setRun("mine")], seen: { [UNIT]: 6 } });
  await world.line.answer("do", { seq: 5 });
  await insisted;
  expect(desk.part(UNIT)).toMatchObject({ status: "mine", draft: null });
});

test("what is stale can be given up for theirs", async () => {
  const { world, desk, drawer } = await typed();
  void desk.save(UNIT);
  await world.line.refuse("do", { code: "stale", message: "changed" });
  desk.discard(UNIT);
  expect(desk.part(UNIT)).toMatchObject({ status: "free", draft: null });
  expect(drawer.drafts).toEqual({});
});

test("what the server cannot accept stays to be corrected", async () => {
  const { world, desk } = await typed();
  desk.leave(UNIT);
  await world.line.refuse("do", { code: "invalid", message: "no such parameter" });
  expect(desk.part(UNIT)).toMatchObject({ status: "mine", draft: setRun("mine"), refused: { message: "no such parameter" } });
  // It is not sent again as it is only because its author goes elsewhere.
  desk.leave(UNIT);
  expect(world.line.all("do")).toHaveLength(1);
  desk.edit(UNIT, setRun("right"), []);
  expect(desk.part(UNIT).refused).toBeNull();
});

test("what is saved while the connection is lost is said when it is back", async () => {
  const { world, desk } = await typed();
  world.line.cut();
  desk.leave(UNIT);
  expect(desk.part(UNIT)).toMatchObject({ status: "saving", draft: setRun("mine") });
  await world.pass(200);
  await world.line.join({ seq: 4, versions: { [UNIT]: 4 } });
  await world.line.answer("lock", { locks: { [UNIT]: 3 } });
  expect(world.line.last("do")).toMatchObject({ op: 1, tokens: { [UNIT]: 3 } });
  await world.line.answer("do", { seq: 5 });
  expect(desk.unsaved).toBe(0);
});

test("a part that was come to without a connection is locked when that is back", async () => {
  const { world, desk } = await seated();
  world.line.cut();
  desk.enter(UNIT, []);
  expect(desk.part(UNIT).status).toBe("free");
  await world.pass(200);
  await world.line.join();
  expect(world.line.all("lock")).toHaveLength(1);
  await world.line.answer("lock", { locks: { [UNIT]: 1 } });
  expect(desk.part(UNIT).status).toBe("mine");
});

test("drafts from before a reload are there, without a lock", async () => {
  const draft = { draft: setRun("kept"), seen: 2 };
  const { desk } = await seated({ seq: 2, versions: { [UNIT]: 2 } }, { [UNIT]: draft });
  expect(desk.part(UNIT)).toMatchObject({ status: "lost", ...draft });
  expect(desk.unsaved).toBe(1);
});

test("drafts from before a reload that had arrived are forgotten", async () => {
  const { world, desk, drawer } = await seated({}, { [UNIT]: { draft: setRun("kept"), seen: 0 } });
  await world.line.say({ re: 0, ok: { state: state({ seq: 1, composition: composition("kept") }) } });
  expect(desk.part(UNIT).status).toBe("free");
  expect(drawer.drafts).toEqual({});
});
