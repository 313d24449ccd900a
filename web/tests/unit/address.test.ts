import { address, visited } from "./browserless";
import { expect, test } from "@playwright/test";
import type { MouseEvent } from "react";
import { ask, events, lines, Problem, socketAddress } from "../../src/api/client";
import { go, Link, setParameter } from "../../src/app/router";
import { may, signedIn, signOut } from "../../src/app/session";
import { contentRange, readPart } from "../../src/runs/files/part";
import { answer, serving } from "./server";

const answering = (status: number, pieces: string[], headers: Record<string, string> = {}) => serving(() => answer(status, pieces, headers));

async function all<T>(of: AsyncGenerator<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const each of of) found.push(each);
  return found;
}

test("one goes from place to place, and only to what was left one can go back", () => {
  go("/runs/3");
  expect(visited.at(-1)).toBe("/ui/runs/3");
  const before = visited.length;
  setParameter("chain", "4 & 5");
  expect(address.search).toBe("?chain=4+%26+5");
  setParameter("tab", "logs", { left: true });
  expect(visited).toHaveLength(before + 1);
  setParameter("chain", null);
  setParameter("tab", null);
  expect(visited.at(-1)).toBe("/ui/runs/3");
  go("/fleet", { replace: true });
  expect(visited).toHaveLength(before + 1);
});

test("a link is followed here, unless another tab was meant", () => {
  const link = Link({ to: "/fleet?x=1" });
  const { href, onClick } = link.props as { href: string; onClick: (event: MouseEvent<HTMLAnchorElement>) => void };
  expect(href).toBe("/ui/fleet?x=1");
  const click = (more: object) => {
    let isPrevented = false;
    onClick({ button: 0, preventDefault: () => (isPrevented = true), ...more } as unknown as MouseEvent<HTMLAnchorElement>);
    return isPrevented;
  };
  for (const other of [{ ctrlKey: true }, { metaKey: true }, { shiftKey: true }, { button: 1 }, { defaultPrevented: true }]) expect(click(other)).toBe(false);
  expect(visited.at(-1)).not.toBe("/ui/fleet?x=1");
  expect(click({})).toBe(true);
  expect(visited.at(-1)).toBe("/ui/fleet?x=1");
});

test("a role allows what the lesser ones do, and nobody nothing", () => {
  const who = (role: "viewer" | "editor" | "operator") => ({ role }) as Parameters<typeof may>[0];
  expect(may(who("editor"), "viewer")).toBe(true);
  expect(may(who("editor"), "operator")).toBe(false);
  expect(may(null, "viewer")).toBe(false);
});

test("requests carry the token of who has signed in, and sockets have it in their address", async () => {
  signedIn({ role: "viewer" } as Parameters<typeof signedIn>[0], "secret", false);
  const asked = answering(200, ["{}"]);
  await ask("/runs");
  expect(asked[0]!.headers["Authorization"]).toBe("Bearer secret");
  expect(socketAddress("/live", { session: "7" })).toBe("wss://catena.test/live?session=7&token=secret");
  signOut();
  await ask("/runs", { method: "POST", body: "steps: []" });
  expect(asked[1]!.headers).toEqual({ "Content-Type": "application/yaml" });
  expect(socketAddress("/live")).not.toContain("secret");
});

test("a refusal becomes a problem with what the server says", async () => {
  answering(400, ['{"error": "no", "details": [1]}']);
  const problem = await ask("/runs").catch((error: unknown) => error);
  expect(problem).toBeInstanceOf(Problem);
  expect(problem).toMatchObject({ status: 400, message: "no", details: [1] });
  answering(502, ["<html>"]);
  await expect(ask("/runs")).rejects.toMatchObject({ status: 502, message: "The server answers 502." });
  globalThis.fetch = () => Promise.reject(new TypeError("network"));
  await expect(ask("/runs")).rejects.toMatchObject({ status: 0, message: "The server does not answer." });
});

test("lines are whole however they arrive, and the last one needs no end", async () => {
  answering(200, ["fir", "st\nsec", "ond\n\nla", "st"]);
  expect(await all(lines("/x"))).toEqual(["first", "second", "", "last"]);
  answering(200, [": hello\n\nda", 'ta: {"run": 1}\n\ndata: {"run": 2}\n']);
  expect(await all(events<{ run: number }>("/events"))).toEqual([{ run: 1 }, { run: 2 }]);
});

test("a part of a file is read wherever it is, also from servers that only send everything", async () => {
  const text = async (part: ReturnType<typeof readPart>) => {
    const { bytes, from, total } = await part;
    return [new TextDecoder().decode(bytes), from, total];
  };
  const asked = answering(206, ["456"], { "Content-Range": "bytes 4-6/10" });
  expect(await text(readPart("/f", 4, 3))).toEqual(["456", 4, 10]);
  expect(asked[0]!.headers["Range"]).toBe("bytes=4-6");
  answering(200, ["01", "2345", "6789"], { "Content-Length": "10" });
  expect(await text(readPart("/f", 4, 3))).toEqual(["456", 4, 10]);
  answering(200, ["0123456789"], { "Content-Length": "10" });
  expect(await text(readPart("/f", -4, 4))).toEqual(["6789", 6, 10]);
  answering(416, ["{}"]);
  expect(await text(readPart("/f", 20, 5))).toEqual(["", 20, null]);
  expect(contentRange("bytes */10")).toBeNull();
});
