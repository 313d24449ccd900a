import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "./workbench";

const EVIL = `<img src=x onerror="document.title='broken'"><script>document.title='broken'</script>`;
const PICTURE = `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>document.title=1</script><image href="http://127.0.0.1:9/x"/></svg>`;
const ESCAPES = "\x1b]0;broken\x07\x1b[2J\x1b[31mred\x1b[0m \x1b]8;;javascript:document.title=1\x1b\\link\x1b]8;;\x1b\\ <b>bold</b>\n";

test("names, messages, logs and files that pretend to be pages are only texts", async ({ window, server }) => {
  const { page } = window;
  const keep = (name: string, text: string) => {
    writeFileSync(join(server.directory, name), text);
    return join(server.directory, name);
  };
  const text = `catena: 1
name: ${JSON.stringify(EVIL)}
steps:
  ok: {run: "cat ${keep("evil.html", EVIL)} > {out}", out: page.html}
  picture: {run: "cat ${keep("evil.svg", PICTURE)} > {out}", out: bad.svg}
  bad: {run: "cat ${keep("escapes.txt", ESCAPES)}; cat ${keep("evil.html", EVIL)} >&2; exit 3"}
results: {page: "{ok.out}", picture: "{picture.out}"}
`;
  const run = await server.submit(text);
  await server.ended(run);
  const good = await server.submit(text.replace("exit 3", "exit 0"));
  expect(await server.ended(good)).toBe("succeeded");
  const requests: string[] = [];
  page.on("request", (request) => requests.push(request.url()));

  await window.open("/runs");
  await expect(page.getByRole("link", { name: "<img" }).first()).toBeVisible();
  await window.open(`/runs/${run}/failures`);
  await expect(page.getByText("<script>document.title=").first()).toBeVisible();
  await window.open(`/runs/${run}/logs?log=${await chainOf("bad")}&task=0&stream=out`);
  const log = page.getByRole("region", { name: /^Log of bad/ });
  await expect(log).toContainText("red");
  await expect(log).toContainText("<b>bold</b>");
  await expect(log.locator("a, b")).toHaveCount(0);
  await window.open(`/runs/${good}/results`);
  await expect(page.getByRole("heading", { name: "page" })).toBeVisible();
  await expect(page.getByText("onerror").first()).toBeVisible();
  await expect(page.getByRole("img", { name: "bad.svg" })).toBeVisible();
  await window.open(`/runs/${run}/workflow`);
  await expect(page.getByRole("textbox", { name: "Workflow of this run" })).toContainText("onerror");

  expect(await page.title()).not.toContain("broken");
  expect(requests.filter((url) => !url.startsWith(server.url) && !url.startsWith("blob:"))).toEqual([]);
  expect(await page.locator("img[src='x']").count()).toBe(0);
  window.expectQuiet();

  async function chainOf(task: string): Promise<number> {
    const chains = (await (await server.ask(`/runs/${run}/chains`)).json()) as { chain: number; tasks: string[] }[];
    return chains.find((c) => c.tasks.includes(task))!.chain;
  }
});

test("pages may load nothing from elsewhere and be shown by nobody else", async ({ server }) => {
  const page = await fetch(`${server.url}/ui/`);
  const policy = page.headers.get("content-security-policy")!;
  expect(policy).toContain("default-src 'self'");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toContain("unsafe-eval");
  expect(page.headers.get("x-content-type-options")).toBe("nosniff");
  expect((await fetch(`${server.url}/ui/assets/none.js`)).status).toBe(404);
  expect(await (await fetch(`${server.url}/ui/licences.txt`)).text()).toContain("elkjs");
  expect((await fetch(`${server.url}/ui/runs/1`)).headers.get("content-type")).toContain("text/html");
});
