import { another, expect, Server, test } from "./workbench";

const WORKFLOW = `catena: 1
name: survey of the sky
inputs: {ns: {range: 12}}
steps:
  project: {for: n in ns, run: "sleep 0.0{n}; echo {n} > {out}", out: n.txt}
  align: {for: p in project.out, run: "sleep 0.05; cat {p} > {out}", out: a.txt}
  background: {run: "sleep 0.3; cat {align.out} > {out}", out: b.txt}
  correct: {for: a in align.out, run: "cat {a} {background.out} > {out}", out: c.txt}
  mosaic: {run: "cat {correct.out} > {out}", out: mosaic.txt}
results: {mosaic: "{mosaic.out}"}
`;
const FLEET = `fleet:
  setups:
    - {id: gpu-node, provides: [gpu], max: 4, cpus: 4}
  pools:
    - {capabilities: [gpu], max: 8}
`;

test("nobody gets in without a good token, and each role sees what it may do", async ({ page, browser, server }) => {
  await page.goto(`${server.url}/ui/fleet`);
  await page.getByLabel("Token").fill("catena-nonsense");
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("alert")).toContainText("not known here");
  await page.getByLabel("Token").fill(server.owner);
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("heading", { name: "Fleet" })).toBeVisible();
  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(page.getByLabel("Token")).toBeVisible();

  const run = await server.submit("catena: 1\nname: for viewers\nsteps:\n  a: {run: \"true\"}\n");
  await server.ended(run);
  const viewer = await another(browser, server);
  await viewer.open(`/runs/${run}`, server.token("vera", "viewer"));
  await expect(viewer.page.getByRole("heading", { name: "for viewers" })).toBeVisible();
  await expect(viewer.page.getByRole("link", { name: "Edit and run again" })).toHaveCount(0);
  await expect(viewer.page.getByRole("button", { name: /Delete/ })).toHaveCount(0);
  await viewer.open("/submit", server.token("vera2", "viewer"));
  await expect(viewer.page.getByText("needs the role editor")).toBeVisible();
  await viewer.check();
});

test("every page can be used by everybody, light and dark, wide and narrow", async ({ window, server }) => {
  test.setTimeout(240_000);
  const { page } = window;
  const run = await server.submit(WORKFLOW);
  expect(await server.ended(run)).toBe("succeeded");
  // Others fail, go on, or wait meanwhile.
  await server.ended(await server.submit("catena: 1\nname: variants\nsteps:\n  call: {run: \"echo no reference >&2; exit 4\"}\n"));
  const busy = await server.submit("catena: 1\nname: climate ensemble\ninputs: {ns: {range: 40}}\nsteps:\n  member: {for: n in ns, run: \"[ {n} -lt 14 ] || sleep 100\"}\n");
  const held = await server.submit("catena: 1\nname: rendering\nsteps:\n  frame: {run: \"true\", needs: [gpu]}\n");
  await server.ask(`/runs/${held}/pause`, { method: "POST" });
  await server.ask("/compositions/tour", { method: "PUT", body: "composition: 1\nname: Tour\nroot: main\nworkflows:\n  a: {inputs: {}, outputs: {o: file}, task: {run: 'echo > {o}'}}\n  main: {inputs: {}, outputs: {o: file}, graph: {nodes: {n: {use: a}}, links: {l: n.o -> o}}}\n" });
  const places = ["/runs", `/runs/${run}/graph`, `/runs/${run}/timeline`, `/runs/${run}/critical-path`, `/runs/${run}/chains?chain=3`, `/runs/${run}/results`, `/runs/${run}/workflow`, "/submit", "/fleet", "/compose", "/compose/tour", "/simulate"];
  for (const [width, height, theme] of [[1280, 800, "light"], [768, 1024, "dark"]] as const) {
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme: theme });
    for (const place of places) {
      await window.open(place);
      await expect(page.getByRole("main").getByRole("heading").first()).toBeVisible();
      await expect(page.getByText("Loading …")).toHaveCount(0);
      await window.check();
      const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      expect(over, `${place} is wider than the window`).toBeLessThanOrEqual(0);
      if (theme === "light" && place === "/runs") await window.picture("runs");
      if (theme === "light" && place.endsWith("/graph")) await window.picture("graph");
      if (theme === "light" && place.endsWith("/critical-path")) await window.picture("critical-path");
      if (theme === "light" && place.includes("chain=3")) await window.picture("chain");
    }
  }
  for (const left of [busy, held]) await server.ask(`/runs/${left}/cancel`, { method: "POST" });
});

test("the keyboard is enough", async ({ window, server }) => {
  const { page } = window;
  const run = await server.submit(WORKFLOW.replace("survey of the sky", "by keyboard"));
  await server.ended(run);
  await window.open("/runs");
  await page.keyboard.press("Tab");
  await expect(page.getByRole("link", { name: "Skip to the content" })).toBeFocused();
  const link = page.getByRole("link", { name: "by keyboard" });
  await link.focus();
  await page.keyboard.press("Enter");
  const graph = page.getByRole("application", { name: "Graph of 5 steps" });
  await graph.focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("complementary", { name: /^Step/ })).toBeVisible();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: /Theme/ }).press("Enter");
  await page.getByRole("button", { name: /Theme/ }).press("Enter");
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  await window.check();
});

test("the fleet says who there is, what is made, and why a chain waits", async ({ browser }) => {
  const server = await Server.start(FLEET);
  try {
    const window = await another(browser, server);
    const { page } = window;
    const run = await server.submit("catena: 1\nname: needs more\nsteps:\n  a: {run: \"true\", needs: [quantum]}\n  b: {run: \"sleep 30\"}\n");
    await window.open("/fleet");
    await expect(page.getByRole("region", { name: "Table of agents" })).toContainText("processors");
    await expect(page.getByRole("list", { name: "Chains that wait" })).toContainText("quantum");
    await expect(page.getByRole("list", { name: "Setups" })).toContainText("gpu-node");
    const why = page.getByRole("form", { name: "Why is this chain waiting?" });
    await why.getByLabel("Run").fill(String(run));
    await why.getByLabel("Chain").fill("0");
    await why.getByRole("button", { name: "Ask" }).click();
    await expect(page.getByRole("list", { name: "Reasons" })).toContainText("no setup can satisfy {quantum}");
    await window.check();
    await window.picture("fleet");
  } finally {
    await server.end();
  }
});

test("workflows are simulated and policies compared", async ({ window, server }) => {
  const { page } = window;
  const run = await server.submit(WORKFLOW.replace("survey of the sky", "to be simulated"));
  await server.ended(run);
  await window.open(`/simulate?run=${run}`);
  await expect(page.getByRole("button", { name: "A run" })).toHaveAttribute("aria-pressed", "true");
  await page.getByRole("button", { name: "Generated" }).click();
  await page.getByLabel("Tasks").fill("200");
  await page.getByLabel("Numbers of nodes").fill("1, 4, 16");
  await page.getByRole("button", { name: "Compare" }).click();
  await expect(page.getByRole("region", { name: "Table of results" })).toContainText("catena");
  await expect(page.getByText(/12 of 12 simulations done/)).toBeAttached();
  await expect(page.getByRole("img", { name: /^Makespan against the number of nodes/ })).toBeVisible();
  await page.getByRole("combobox", { name: "Timelines for how many nodes" }).selectOption("4");
  await expect(page.getByRole("region", { name: "Timeline of heft" })).toBeVisible();
  await window.check();
  await window.picture("simulate");

  // A description that is wrong is refused with its place.
  await page.getByLabel("Kind of cluster").selectOption("own");
  await page.getByRole("textbox", { name: "Description of the cluster" }).fill("nodes: [{count: 2, sped: 3}]\n");
  await page.getByRole("button", { name: "Compare" }).click();
  await expect(page.getByRole("alert").first()).toContainText("sped");
});
