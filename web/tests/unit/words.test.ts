import { expect, test } from "@playwright/test";
import { colourOf, colourOfName, stateToken } from "../../src/ui/colours";
import { ago, bytes, count, duration, lasting, moment } from "../../src/ui/format";

test("a duration is said as people say it", () => {
  const said = [0, 430, 999.4, 1000, 12_340, 59_900, 60_000, 245_000, 12_000_000, 48 * 3_600_000, 50 * 3_600_000, -1500].map(duration);
  expect(said).toEqual(["0 ms", "430 ms", "999 ms", "1.00 s", "12.3 s", "59.9 s", "1 min 0 s", "4 min 5 s", "3 h 20 min", "2 d 0 h", "2 d 2 h", "-1.50 s"]);
  expect([duration(NaN), duration(Infinity)]).toEqual(["–", "–"]);
});

test("nothing is rounded to a whole one of the next unit", () => {
  expect(duration(999.7)).toBe("1.00 s");
  expect(duration(9999)).toBe("10.0 s");
  expect(duration(59_990)).toBe("1 min 0 s");
  expect(bytes(2 ** 20 - 1)).toBe("1.0 MiB");
});

test("bytes have the largest unit that fits", () => {
  expect([0, 1023, 1024, 1_572_864, 2 ** 40, 2 ** 62].map(bytes)).toEqual(["0 B", "1023 B", "1.0 KiB", "1.5 MiB", "1.0 TiB", "4096.0 PiB"]);
});

test("how long ago something was is said in whole units", () => {
  const now = 1_000_000_000;
  const said = [-5000, 4999, 5000, 59_999, 60_000, 3_600_000, 86_400_000].map((before) => ago(now - before, now));
  expect(said).toEqual(["just now", "just now", "5 s ago", "59 s ago", "1 min ago", "1 h ago", "1 d ago"]);
});

test("a moment has its day if that is not today", () => {
  const now = Date.now();
  expect(moment(now)).toMatch(/^\d\d:\d\d:\d\d$/);
  expect(moment(now - 3 * 86_400_000)).toMatch(/ \d\d:\d\d:\d\d$/);
});

test("one is one, and others are many", () => {
  expect([count(1, "chain"), count(0, "chain"), count(1000, "chain"), count(2, "policy", "policies")]).toEqual(["1 chain", "0 chains", "1,000 chains", "2 policies"]);
});

test("whatever has a name always has the same colour", () => {
  expect(colourOf(-1)).toBe(colourOf(9));
  expect(colourOf(10)).toBe(colourOf(0));
  expect(colourOfName("anna")).toBe(colourOfName("anna"));
  expect(new Set(["anna", "ben", "cem", "dora", "emil"].map(colourOfName)).size).toBeGreaterThan(2);
  expect([stateToken("interrupted"), stateToken("running")]).toEqual(["state-paused", "state-running"]);
});

test("what goes on is told in whole seconds", () => {
  expect([lasting(-5), lasting(999), lasting(59_999), lasting(61_500)]).toEqual(["0 s", "0 s", "59 s", "1 min 1 s"]);
});
