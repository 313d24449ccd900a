import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "./workbench";

const ready = (path: string) => `catena: 1
name: counting words
inputs: {ns: {range: 6}}
steps:
  make: {for: n in ns, run: "sleep 0.2; seq {n} > {out}; echo made {n}", out: n.txt}
  check: {run: "cat ${path} > {out}; cat {make.out} >> {out}", out: words.csv}
  draw: {run: "wc -l < {check.out}; printf '<svg xmlns=\\"http://www.w3.org/2000/svg\\" width=\\"40\\" height=\\"40\\"><rect width=\\"40\\" height=\\"40\\" fill=\\"teal\\"/></svg>' > {out}", out: words.svg}
results: {table: "{check.out}", picture: "{draw.out}"}
`;

test("a workflow is submitted, watched, found to fail, mended, and tried again", async ({ window, server }) => {
  const { page } = window;
  const missing = join(server.directory, "head.csv");
  await window.open("/runs");
  await page.getByRole("link", { name: "Submit a workflow" }).click();
  const editor = page.getByRole("textbox", { name: "Workflow", exact: true });

  // Mistakes are told while one types, with their place.
  await editor.fill(ready(missing).replace("run: \"cat", "rum: \"cat"));
  const mistakes = page.getByRole("list", { name: "Mistakes" });
  await expect(mistakes).toContainText("line 6");
  await expect(mistakes).toContainText("did you mean");
  await window.check();
  await editor.fill(ready(missing));
  await expect(page.getByText("This workflow can be run.")).toBeVisible();
  await window.picture("submit");
  await page.getByRole("button", { name: "Submit" }).click();

  // It runs, and fails.
  await expect(page.getByRole("heading", { name: "counting words" })).toBeVisible();
  const wrong = page.getByRole("region", { name: "What went wrong" });
  await expect(wrong).toContainText("1 chain failed");
  await wrong.getByRole("link").first().click();
  await expect(page.getByText("No such file or directory").first()).toBeVisible();
  await window.check();
  await window.picture("failures");
  await page.getByRole("link", { name: /^Chain \d+$/ }).first().click();
  const panel = page.getByRole("complementary", { name: /^Chain/ });
  await expect(panel).toContainText("It has failed and is not tried again");
  await panel.getByRole("tab", { name: "Log" }).click();
  await panel.getByText("errors").click();
  await expect(panel).toContainText("head.csv: No such file or directory");

  // What was missing is put there.
  writeFileSync(missing, "word,count\n");
  await page.getByRole("group", { name: "What to do with the run" }).getByRole("button", { name: "Retry" }).click();
  await expect(window.state("succeeded")).toBeVisible();
  await expect(wrong).toBeHidden();

  // What came of it: a table and a picture, and where they come from.
  await page.getByRole("link", { name: "Results" }).click();
  await expect(page.getByRole("region", { name: "Contents of words.csv" })).toContainText("word");
  await expect(page.getByRole("img", { name: "words.svg" })).toBeVisible();
  await page.getByRole("button", { name: "Where words.csv comes from" }).click();
  await expect(page.getByRole("list", { name: "Provenance" })).toContainText("make");
  await window.check();
  await window.picture("results");
});

test("a run is edited and run again, paused, reordered, cancelled and deleted", async ({ window, server }) => {
  const { page } = window;
  const run = await server.submit("catena: 1\nname: slow\nsteps:\n  wait: {run: \"sleep 60\"}\n  then: {run: \"echo {wait.out}\", after: [wait]}\n".replace("echo {wait.out}", "true"));
  await window.open(`/runs/${run}`);
  const actions = page.getByRole("group", { name: "What to do with the run" });
  await actions.getByRole("button", { name: "Pause" }).click();
  await expect(actions.getByRole("button", { name: "Resume" })).toBeVisible();
  await actions.getByRole("button", { name: /^Priority/ }).click();
  await page.getByRole("spinbutton", { name: "Priority" }).fill("7");
  await page.getByRole("button", { name: "Set" }).click();
  await expect(page.getByText("priority 7")).toBeVisible();
  await actions.getByRole("button", { name: /^Cancel/ }).click();
  await page.getByRole("button", { name: "Cancel the run" }).click();
  await expect(window.state("cancelled")).toBeVisible();
  await actions.getByRole("link", { name: "Edit and run again" }).click();
  await page.getByRole("textbox", { name: "Workflow", exact: true }).fill("catena: 1\nname: quick\nsteps:\n  wait: {run: \"true\"}\n");
  await page.getByRole("button", { name: "Run again" }).click();
  await expect(window.state("succeeded")).toBeVisible();
  await actions.getByRole("button", { name: /^Delete/ }).click();
  await page.getByRole("button", { name: "Delete the run" }).click();
  await expect(page.getByRole("table", { name: "Runs" })).toContainText("slow");

  // The number of a run that is gone is not given to another.
  const next = await server.submit("catena: 1\nsteps:\n  a: {run: \"true\"}\n");
  expect(next).toBeGreaterThan(run + 1);
  expect(await server.ended(next)).toBe("succeeded");
  window.expectQuiet();
});

test("a log is followed as it is written, and searched", async ({ window, server }) => {
  const { page } = window;
  const go = join(server.directory, "go");
  const run = await server.submit(`catena: 1\nname: talking\nsteps:\n  say: {run: "for i in $(seq 3000); do echo line $i; done; until [ -e ${go} ]; do sleep 0.05; done; echo the end"}\n`);
  await window.open(`/runs/${run}/logs`);
  const log = page.getByRole("region", { name: /^Log of say/ });
  await expect(log).toContainText("line 3000");
  await expect(page.getByText("live")).toBeVisible();
  writeFileSync(go, "");
  await expect(log).toContainText("the end");
  const search = page.getByLabel("Search in the log");
  await search.fill("line 29");
  await search.press("Enter");
  await expect(page.getByText(/^\d+ of 111$/)).toBeVisible();
  await expect(log.locator("mark").first()).toBeVisible();
  await window.check();
});
