import { expect, test } from "@playwright/test";
import { Connection, Lost } from "../../src/compose/live/connection";
import { Refusal } from "../../src/compose/live/protocol";
import { FakeWorld, state } from "./world";

function connected() {
  const world = new FakeWorld();
  const heard: string[] = [];
  const listener = { state: () => heard.push("state"), event: () => heard.push("event"), lost: () => heard.push("lost") };
  const connection = new Connection(world, listener, null);
  connection.open();
  return { world, connection, heard };
}

test("nothing is said on a line before the server has told what there is", async () => {
  const { world, connection, heard } = connected();
  await expect(connection.ask({ type: "redo" })).rejects.toThrow(Lost);
  expect(world.line.heard).toEqual([]);
  await world.line.join();
  expect(heard).toEqual(["state"]);
  expect(connection.session).toBe(7);
  connection.say({ type: "redo" });
  expect(world.line.heard).toHaveLength(1);
});

test("requests are numbered from the time on, so that they also grow after a reload", async () => {
  const { world, connection } = connected();
  const began = world.time;
  await world.line.join();
  connection.say({ type: "undo", skip: false });
  connection.say({ type: "redo" });
  const ids = world.line.heard.map((h) => h.id);
  expect(ids[0]).toBeGreaterThan(began);
  expect(ids[1]).toBeGreaterThan(ids[0]!);
  world.time += 60_000;
  const later = new FakeWorld();
  later.time = world.time;
  const again = new Connection(later, { state: () => undefined, event: () => undefined, lost: () => undefined }, 7);
  again.open();
  expect(later.line.session).toBe(7);
  await later.line.join();
  again.say({ type: "redo" });
  expect(later.line.heard[0]!.id).toBeGreaterThan(ids[1]!);
});

test("an answer goes to whoever has asked for it, whatever the order", async () => {
  const { world, connection } = connected();
  await world.line.join();
  const undo = connection.ask({ type: "undo", skip: false });
  const redo = connection.ask({ type: "redo" });
  await world.line.answer("redo", { seq: 2 });
  await world.line.answer("undo", { seq: 1 });
  expect(await undo).toEqual({ seq: 1 });
  expect(await redo).toEqual({ seq: 2 });
});

test("a refusal comes with what the server says, with names between quotes", async () => {
  const { world, connection } = connected();
  await world.line.join();
  const asked = connection.ask({ type: "redo" });
  const refused = asked.catch((error: unknown) => error);
  await world.line.refuse("redo", { code: "nothing", message: "there is nothing in `main`" });
  expect(await refused).toBeInstanceOf(Refusal);
  expect((await refused) as Refusal).toMatchObject({ message: "there is nothing in “main”", refused: { code: "nothing" } });
});

test("a line that is lost is opened again after pauses that double up to two seconds", async () => {
  const { world, heard } = connected();
  await world.line.join();
  const pauses: number[] = [];
  for (let i = 0; i < 6; i++) {
    const before = world.lines.length;
    const cut = world.time;
    world.line.cut();
    while (world.lines.length === before) await world.pass(50);
    pauses.push(world.time - cut);
  }
  expect(pauses).toEqual([200, 400, 800, 1600, 2000, 2000]);
  expect(heard.filter((h) => h === "lost")).toHaveLength(6);
  // The server is there again, so the next loss is a new one.
  await world.line.join();
  world.line.cut();
  const before = world.lines.length;
  await world.pass(199);
  expect(world.lines).toHaveLength(before);
  await world.pass(1);
  expect(world.lines).toHaveLength(before + 1);
});

test("who comes back says which session it was", async () => {
  const { world } = connected();
  expect(world.line.session).toBeNull();
  await world.line.join();
  world.line.cut();
  await world.pass(200);
  expect(world.line.session).toBe(7);
});

test("what was asked when a line is lost is not known to be done", async () => {
  const { world, connection } = connected();
  await world.line.join();
  const asked = connection.ask({ type: "redo" }).catch((error: unknown) => error);
  world.line.cut();
  expect(await asked).toBeInstanceOf(Lost);
});

test("a session is renewed every ten seconds, and a line on which nothing is heard is given up", async () => {
  const { world } = connected();
  await world.line.join();
  for (let i = 1; i <= 4; i++) {
    await world.pass(10_000);
    expect(world.line.all("renew")).toHaveLength(i);
    await world.line.answer("renew", {});
  }
  const [line] = world.lines;
  await world.pass(29_999);
  expect(line!.isClosed).toBe(false);
  await world.pass(1);
  expect(line!.isClosed).toBe(true);
  await world.pass(200);
  expect(world.lines).toHaveLength(2);
});

test("a composition that has moved is looked for on another line", async () => {
  const { world, connection } = connected();
  await world.line.join();
  const asked = connection.ask({ type: "redo" }).catch((error: unknown) => error);
  await world.line.refuse("redo", { code: "moved", message: "elsewhere" });
  expect(await asked).toBeInstanceOf(Lost);
  await world.pass(200);
  expect(world.lines).toHaveLength(2);
});

test("what an old line still says is not heard", async () => {
  const { world, heard } = connected();
  await world.line.join();
  const [old] = world.lines;
  old!.cut();
  await world.pass(200);
  await old!.say({ re: 0, ok: { state: state() } });
  await old!.say({ event: "left", session: 1 });
  expect(heard).toEqual(["state", "lost"]);
  old!.cut();
  expect(world.lines).toHaveLength(2);
});

test("a line that was closed for good stays closed", async () => {
  const { world, connection, heard } = connected();
  await world.line.join();
  const asked = connection.ask({ type: "redo" }).catch((error: unknown) => error);
  connection.close();
  expect(await asked).toBeInstanceOf(Lost);
  await world.pass(60_000);
  expect(world.lines).toHaveLength(1);
  expect(heard).toEqual(["state"]);
});
