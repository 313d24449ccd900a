import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, Server, test as base, Window } from "./workbench";
import { BUILT } from "./server";

/** A server that remembers a run of 150,000 chains, and one of a workflow with 10,000 steps. */
const test = base.extend<{ window: Window }, { large: Server }>({
  large: [
    async ({}, use) => {
      const remember = (directory: string) => void execFileSync(join(BUILT, "examples", "remembered"), [join(directory, ".catena")]);
      const server = await Server.start("", remember);
      await use(server);
      await server.end();
    },
    { scope: "worker" },
  ],
  window: async ({ page, large }, use) => {
    await use(new Window(page, large));
  },
});

test("a graph of 10,000 tasks opens soon, is searched, and shows what a step is", async ({ window }) => {
  const { page } = window;
  await window.open("/runs");
  const began = Date.now();
  await page.getByRole("link", { name: "pipeline" }).click();
  const graph = page.getByRole("application", { name: "Graph of 10,000 steps" });
  await graph.waitFor();
  await drawn(page.locator("canvas").first());
  console.log(`a graph of 10,000 tasks: open after ${Date.now() - began} ms`);
  await page.getByRole("combobox", { name: "Find a step" }).fill("s4711");
  await page.keyboard.press("Enter");
  await expect(page.getByText("s4711, true, 1 succeeded")).toBeAttached();
  await graph.press("Enter");
  const step = page.getByRole("complementary", { name: "Step s4711" });
  await expect(step).toContainText("1 succeeded");
  await window.check();
  await page.getByRole("button", { name: "As a table" }).click();
  await expect(page.getByRole("region", { name: "Steps as a table" })).toContainText("s4711");
  window.expectQuiet();
});

test("a timeline of 150,000 chains is panned and zoomed, with what went wrong", async ({ window }) => {
  const { page } = window;
  const began = Date.now();
  await window.open("/runs/1/timeline");
  const timeline = page.getByRole("application", { name: /150,\d+ executions on \d+ agents/ });
  await timeline.waitFor();
  await drawn(page.locator("canvas").first());
  console.log(`a timeline of 150,000 chains: open after ${Date.now() - began} ms`);
  const box = (await timeline.boundingBox())!;
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  for (let i = 0; i < 4; i++) await page.mouse.wheel(0, -200);
  const rate = page.evaluate(
    () =>
      new Promise<number>((done) => {
        const first = performance.now();
        let frames = 0;
        const count = (now: number) => {
          frames += 1;
          if (now - first < 3000) requestAnimationFrame(count);
          else done((frames * 1000) / (now - first));
        };
        requestAnimationFrame(count);
      }),
  );
  await page.mouse.down();
  for (let i = 0; i < 120; i++) await page.mouse.move(box.x + box.width / 2 + 250 * Math.sin(i / 8), box.y + box.height / 2, { steps: 2 });
  await page.mouse.up();
  console.log(`a timeline of 150,000 chains: ${(await rate).toFixed(0)} frames/s while it is panned`);

  // Failed attempts and lost agents are told, and can be looked at alone.
  await page.getByRole("combobox", { name: "State" }).selectOption("mishap");
  await expect(page.getByRole("application", { name: /\b1\d\d executions on \d+ agents/ })).toBeVisible();
  await page.getByRole("combobox", { name: "State" }).selectOption({ index: 0 });
  await expect(page.getByRole("group", { name: "Legend" })).toContainText("gpu");
  await page.getByRole("button", { name: "Fit" }).click();
  await window.check();
  await window.picture("timeline");
  const [trace] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export trace" }).click()]);
  expect(trace.suggestedFilename()).toBe("run-1-trace.json");
});

test("the critical path says what the end waited for", async ({ window }) => {
  await window.open("/runs/2/critical-path");
  await expect(window.page.getByRole("region", { name: "Chains of the critical path" })).toContainText("s9");
  await expect(window.page.getByRole("list", { name: "What would shorten the run" })).toBeVisible();
  await window.check();
});

/** Waits until something has been drawn on a canvas. */
async function drawn(canvas: import("@playwright/test").Locator): Promise<void> {
  await expect
    .poll(
      () =>
        canvas.evaluate((element: HTMLCanvasElement) => {
          const { data } = element.getContext("2d")!.getImageData(0, 0, element.width, element.height);
          const colours = new Set<number>();
          for (let i = 0; i < data.length; i += 4 * 97) colours.add((data[i]! << 16) | (data[i + 1]! << 8) | data[i + 2]!);
          return colours.size;
        }),
      { intervals: [20] },
    )
    .toBeGreaterThan(3);
}
