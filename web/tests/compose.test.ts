import { another, expect, Server, test as base, Window } from "./workbench";
import type { Page } from "@playwright/test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const COMPOSITION = `composition: 1
name: Sorted reads
root: main
workflows:
  align: {name: Align, inputs: {reads: file}, outputs: {bam: file}, task: {run: "cat {reads} > {bam}"}}
  sort: {name: Sort, inputs: {bam: file}, outputs: {sorted: file}, task: {run: "sort {bam} > {sorted}"}}
  each: {name: Align each, map: {of: align}}
  merge: {name: Merge, inputs: {a: file, b: file}, outputs: {both: file}, task: {run: "cat {a} {b} > {both}"}}
  all: {name: Merge all, tree: {of: merge, left: a, right: b}}
  main:
    name: Sorted reads
    inputs: {reads: "[file]"}
    outputs: {sorted: file}
    graph:
      nodes: {a: {use: each, at: [0, 0]}, m: {use: all, at: [320, 40]}, s: {use: sort, at: [640, 0]}}
      links: {l1: reads -> a.reads, l2: a.bam -> m.a, l3: m.both -> s.bam, l4: s.sorted -> sorted}
`;

const test = base.extend<{ studio: Studio }>({
  studio: async ({ browser }, use) => {
    const server = await Server.start();
    const studio = new Studio(server, await another(browser, server), await another(browser, server));
    await server.ask("/compositions/sorted", { method: "PUT", body: COMPOSITION });
    await studio.anna.open("/compose/sorted", server.token("anna", "editor"));
    await studio.ben.open("/compose/sorted", server.token("ben", "editor"));
    for (const { page } of [studio.anna, studio.ben]) {
      await expect(page.getByRole("status", { name: "Connection" })).toContainText("Live");
      await expect(page.locator('[data-node="s"]')).toBeVisible();
    }
    await use(studio);
    await server.end();
  },
});

/** Two people who edit one composition. */
class Studio {
  constructor(
    readonly server: Server,
    readonly anna: Window,
    readonly ben: Window,
  ) {}
}

/** Goes to the task of the workflow that a node uses. */
async function openTask(page: Page, node: string): Promise<void> {
  await page.locator(`[data-node="${node}"]`).click();
  await page.getByRole("complementary").getByRole("textbox", { name: "Script", exact: true }).waitFor();
}

const part = (page: Page, unit: string) => page.locator(`fieldset[data-unit="${unit}"]`);

test("two people see what the other has locked, and a refused edit explains itself", async ({ studio }) => {
  const { anna, ben } = studio;
  const unit = "workflows/sort/task";
  await expect(anna.page.getByRole("group", { name: "People here" }).getByRole("img", { name: "ben" })).toBeVisible();
  await openTask(anna.page, "s");
  await openTask(ben.page, "s");

  // Ben waits in the page, so that nothing but the page is measured.
  const seen = ben.page.evaluate(
    (unit) =>
      new Promise<number>((done) => {
        const look = () => {
          const field = document.querySelector(`fieldset[data-unit="${unit}"]`);
          if (field?.textContent?.includes("anna")) done(Date.now());
          else requestAnimationFrame(look);
        };
        look();
      }),
    unit,
  );
  const began = Date.now();
  await part(anna.page, unit).getByRole("textbox", { name: "Script", exact: true }).focus();
  await expect(part(anna.page, unit)).toHaveAttribute("data-status", "mine");
  console.log(`a lock: visible to others after ${(await seen) - began} ms`);

  // Ben wants the same, and is told who has it and what he can do.
  await part(ben.page, unit).getByRole("textbox", { name: "Script", exact: true }).focus();
  await expect(part(ben.page, unit)).toHaveAttribute("data-status", "refused");
  await expect(part(ben.page, unit)).toContainText("anna");
  await expect(part(ben.page, unit)).toContainText("Sort");
  await ben.check();
  await ben.picture("compose");
  await part(ben.page, unit).getByRole("button", { name: "Ask to hand over" }).click();
  await anna.page.getByRole("button", { name: "Hand over" }).click();
  await expect(part(ben.page, unit)).toHaveAttribute("data-status", "mine");
  await part(ben.page, unit).getByRole("textbox", { name: "Script", exact: true }).fill("sort -n {bam} > {sorted}");
  await part(ben.page, unit).getByRole("button", { name: "Save" }).click();
  await expect(part(anna.page, unit).getByRole("textbox", { name: "Script", exact: true })).toHaveValue("sort -n {bam} > {sorted}");
  anna.expectQuiet();
  ben.expectQuiet();
});

test("both undo what they have done themselves", async ({ studio }) => {
  const { anna, ben } = studio;
  const script = (window: Window) => window.page.getByRole("textbox", { name: "Script", exact: true });
  async function write(window: Window, text: string) {
    await script(window).focus();
    await expect(part(window.page, "workflows/sort/task")).toHaveAttribute("data-status", "mine");
    await script(window).fill(text);
    // Going elsewhere saves it and lets it go.
    await script(window).blur();
    await expect(part(window.page, "workflows/sort/task")).toHaveAttribute("data-status", "free");
  }
  await openTask(anna.page, "s");
  await openTask(ben.page, "s");
  await write(anna, "sort -r {bam} > {sorted}");
  await expect(script(ben)).toHaveValue("sort -r {bam} > {sorted}");
  await write(ben, "sort -u {bam} > {sorted}");
  await expect(script(anna)).toHaveValue("sort -u {bam} > {sorted}");

  // Anna's change is covered by Ben's: she is told so, and nothing of his is lost.
  await anna.page.getByRole("button", { name: "Undo" }).click();
  await expect(anna.page.getByRole("log", { name: "Messages" })).toContainText("ben");
  await expect(script(anna)).toHaveValue("sort -u {bam} > {sorted}");

  // Ben takes his back, which is not Anna's, and can do it again.
  await ben.page.getByRole("button", { name: "Undo" }).click();
  await expect(script(anna)).toHaveValue("sort -r {bam} > {sorted}");
  await ben.page.getByRole("button", { name: "Redo" }).click();
  await expect(script(anna)).toHaveValue("sort -u {bam} > {sorted}");
  await anna.page.getByRole("tab", { name: "History" }).click();
  await expect(anna.page.getByRole("list", { name: "History" })).toContainText("ben");
  const history = (await (await studio.server.ask("/compositions/sorted/operations")).json()) as { user: string }[];
  expect(history.map((h) => h.user)).toEqual(["anna", "ben", "ben", "ben"]);
});

test("the server is killed, and both come back with nothing lost", async ({ studio }) => {
  const { anna, ben, server } = studio;
  const script = (window: Window) => window.page.getByRole("textbox", { name: "Script", exact: true });
  await openTask(anna.page, "s");
  await script(anna).focus();
  await expect(part(anna.page, "workflows/sort/task")).toHaveAttribute("data-status", "mine");
  await script(anna).fill("sort --unsaved {bam} > {sorted}");
  await server.kill();
  await expect(anna.page.getByRole("status", { name: "Connection" })).not.toContainText("Live");
  await expect(ben.page.getByRole("status", { name: "Connection" })).not.toContainText("Live");
  await anna.page.keyboard.press("Control+Enter");
  await server.begin();
  for (const window of [anna, ben]) await expect(window.page.getByRole("status", { name: "Connection" })).toContainText("Live");
  await expect(script(anna)).toHaveValue("sort --unsaved {bam} > {sorted}");
  await openTask(ben.page, "s");
  await expect(script(ben)).toHaveValue("sort --unsaved {bam} > {sorted}");
  const text = await (await server.ask("/compositions/sorted")).text();
  expect(text).toContain("--unsaved");
  // A connection that is refused is noted by the browser itself, and by nobody else.
  anna.expectQuiet(/WebSocket|Failed to load resource|ERR_CONNECTION/);
  ben.expectQuiet(/WebSocket|Failed to load resource|ERR_CONNECTION/);
});

test("a workflow is drilled into, wrapped, linked, tidied, named, published and run", async ({ studio }) => {
  const { anna, ben, server } = studio;
  const { page } = anna;
  await page.locator('[data-node="s"]').click();
  await page.getByRole("button", { name: "Map this" }).click();
  await expect(page.locator('[data-node="s"]')).toContainText(/map/i);
  await expect(ben.page.locator('[data-node="s"]')).toContainText(/map/i);
  await page.getByRole("button", { name: "Undo" }).click();
  await expect(page.locator('[data-node="s"]')).not.toContainText(/map/i);
  await page.getByRole("button", { name: "Open Align each" }).click();
  await expect(page.getByRole("navigation", { name: "Way" })).toContainText("Align");
  await page.goBack();
  await page.getByRole("button", { name: "Tidy" }).click();
  await expect(page.locator('[data-node="s"]')).toBeVisible();
  await page.getByRole("tab", { name: "Versions" }).click();
  await page.getByRole("textbox", { name: "Name of the version" }).fill("before the workshop");
  await page.getByRole("button", { name: "Name it" }).click();
  await expect(page.getByRole("list", { name: "Versions" })).toContainText("before the workshop");
  await page.getByRole("button", { name: "YAML" }).click();
  await expect(page.getByRole("region", { name: "YAML" })).toContainText("composition: 1");
  await anna.check();
  await anna.picture("compose-yaml");

  // It runs from here, as it is.
  writeFileSync(join(server.directory, "reads.txt"), "b\na\n");
  const text = (await (await server.ask("/compositions/sorted")).text()).replace("root: main", `root: main\nvalues: {reads: ["${join(server.directory, "reads.txt")}"]}`);
  await server.ask("/compositions/sorted", { method: "PUT", body: text });
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await expect(page.getByRole("heading", { name: "Sorted reads" })).toBeVisible();
  await expect(anna.state("succeeded")).toBeVisible();
});

test("who may only look sees everything and changes nothing", async ({ studio, browser }) => {
  const viewer = await another(browser, studio.server);
  await viewer.open("/compose/sorted", studio.server.token("vera", "viewer"));
  await viewer.page.locator('[data-node="s"]').click();
  await expect(viewer.page.getByRole("textbox", { name: "Script", exact: true })).toHaveAttribute("readonly", "");
  await expect(viewer.page.getByRole("button", { name: "Map this" })).toBeDisabled();
  await viewer.check();
});

test("a composition is made from nothing, from services, and from what others have made", async ({ browser }) => {
  const server = await Server.start("services: [services.yaml]\n", (directory) => {
    const service = `- id: merge
  name: Merge sorted
  path: sort
  parameters:
    - {id: i, name: i, description: what is merged, type: input, cardinality: 1..1, dataType: file, label: -m}
    - {id: o, name: o, description: where it goes, type: output, cardinality: 1..1, dataType: file, label: -o}
`;
    writeFileSync(join(directory, "services.yaml"), service);
  });
  try {
    const window = await another(browser, server);
    const { page } = window;
    await server.ask("/compositions/sorted", { method: "PUT", body: COMPOSITION });
    await window.open("/compose", server.token("carla", "editor"));
    await page.getByRole("button", { name: "New composition" }).click();
    await page.getByRole("textbox", { name: "Name" }).fill("From scratch");
    await page.getByRole("button", { name: "Make it" }).click();
    await expect(page.getByRole("status", { name: "Connection" })).toContainText("Live");

    // A port, a service, and a workflow of another composition with what it is made of.
    await page.getByRole("textbox", { name: "New input" }).focus();
    await expect(page.locator("fieldset[data-unit$='/interface']")).toHaveAttribute("data-status", "mine");
    await page.getByRole("textbox", { name: "New input" }).fill("reads");
    await page.getByRole("button", { name: "Add input" }).click();
    await page.getByRole("heading", { name: "From scratch" }).first().click();
    const palette = page.getByRole("region", { name: "Palette" });
    await palette.getByRole("button", { name: /Merge sorted/ }).click();
    await expect(page.locator("[data-node]")).toHaveCount(1);
    await palette.getByRole("button", { name: /Sorted reads/ }).click();
    await palette.getByRole("button", { name: /^Add Align each/ }).click();
    await expect(page.locator("[data-node]")).toHaveCount(2);
    const made = (await (await server.ask("/compositions/from-scratch?form=json")).json()) as { workflows: Record<string, unknown> };
    expect(Object.keys(made.workflows)).toEqual(expect.arrayContaining(["align", "each", "merge"]));

    // What it lacks is listed, and it is not run before.
    await page.getByRole("tab", { name: /^Problems/ }).click();
    await expect(page.getByRole("list", { name: "Problems" }).getByRole("listitem").first()).toBeVisible();
    await window.check();
  } finally {
    await server.end();
  }
});

test("who waits gets the lock when it is free, a construct is taken away again, and what is published runs", async ({ studio }) => {
  const { anna, ben, server } = studio;
  const unit = "workflows/sort/task";
  const script = (window: Window) => part(window.page, unit).getByRole("textbox", { name: "Script", exact: true });
  await openTask(anna.page, "s");
  await openTask(ben.page, "s");
  await script(anna).focus();
  await expect(part(anna.page, unit)).toHaveAttribute("data-status", "mine");
  await script(ben).focus();
  await part(ben.page, unit).getByRole("button", { name: "Wait" }).click();
  await expect(part(ben.page, unit)).toHaveAttribute("data-status", "waiting");
  await expect(part(ben.page, unit)).toContainText("anna");
  await script(anna).blur();
  await expect(part(ben.page, unit)).toHaveAttribute("data-status", "mine");
  await script(ben).focus();
  await script(ben).blur();
  await expect(part(ben.page, unit)).toHaveAttribute("data-status", "free");
  await expect(part(anna.page, unit)).not.toContainText("ben");

  // A construct is taken away again.
  await anna.page.locator('[data-node="s"]').click();
  await anna.page.getByRole("button", { name: "Map this" }).click();
  await anna.page.getByRole("button", { name: "Take the map away" }).click();
  await expect(anna.page.locator('[data-node="s"]')).not.toContainText(/map/i);
  await anna.page.getByRole("button", { name: "Undo" }).click();
  await anna.page.getByRole("button", { name: "Undo" }).click();
  await expect(anna.page.locator('[data-node="s"]')).not.toContainText(/map/i);

  // Publishing says whose changes are in it; the published version is the one that runs.
  writeFileSync(join(server.directory, "reads.txt"), "b\na\n");
  const text = (await (await server.ask("/compositions/sorted")).text()).replace("root: main", `root: main\nvalues: {reads: ["${join(server.directory, "reads.txt")}"]}`);
  await server.ask("/compositions/sorted", { method: "PUT", body: text });
  await anna.page.getByRole("tab", { name: "Versions" }).click();
  await anna.page.getByRole("button", { name: "Publish what there is now" }).click();
  await anna.page.getByRole("dialog").getByRole("button", { name: /^Publish/ }).click();
  await anna.page.getByRole("button", { name: "Run published", exact: true }).click();
  await expect(anna.state("succeeded")).toBeVisible();
});
