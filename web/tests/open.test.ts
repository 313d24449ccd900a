import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "@playwright/test";
import { BUILT } from "./server";

test("a run on this machine is watched in the browser, and the workbench stays until Ctrl-C", async ({ page }) => {
  const directory = mkdtempSync(join(tmpdir(), "catena-open-"));
  const go = join(directory, "go");
  writeFileSync(join(directory, "data.txt"), "seven\n");
  writeFileSync(
    join(directory, "wf.yaml"),
    `catena: 1\nname: watched\ninputs: {data: data.txt}\nsteps:\n  wait: {run: "until [ -e ${go} ]; do sleep 0.05; done; cat {data} > {out}", out: words.txt}\nresults: {words: "{wait.out}"}\n`,
  );
  // No browser is started by itself here: there is none on the path.
  const child = spawn(join(BUILT, "catena"), ["run", "wf.yaml", "--open"], { cwd: directory, stdio: ["ignore", "pipe", "pipe"], env: { PATH: "/bin:/usr/bin", HOME: directory, BROWSER: "true" } });
  const ended = new Promise<number | null>((done) => child.once("exit", done));
  try {
    let said = "";
    const address = await new Promise<string>((done, fail) => {
      child.stderr.on("data", (text) => {
        said += text;
        const found = /workbench: (\S+)/.exec(said);
        if (found) done(found[1]!);
      });
      child.once("exit", () => fail(new Error(said)));
    });
    await page.goto(address);
    await expect(page.getByRole("heading", { name: "watched" })).toBeVisible();
    await expect(page.locator('[data-state="running"]').first()).toBeVisible();
    expect(page.url()).not.toContain("token");
    // Who watches may look, and change nothing.
    await expect(page.getByRole("button", { name: /Cancel/ })).toHaveCount(0);
    writeFileSync(go, "");
    await expect(page.locator('[data-state="succeeded"]').first()).toBeVisible();
    await page.getByRole("link", { name: "Results" }).click();
    await expect(page.getByText("seven")).toBeVisible();
    // What the workflow reads is shown as well: it is on this machine.
    await page.getByRole("link", { name: "Chains", exact: true }).click();
    await page.getByRole("table", { name: "Chains" }).getByRole("link").first().click();
    const panel = page.getByRole("complementary", { name: /^Chain/ });
    await panel.getByRole("tab", { name: "Files" }).click();
    await expect(panel).toContainText("data.txt");
    child.kill("SIGINT");
    expect(await ended).toBe(0);
  } finally {
    child.kill("SIGKILL");
    rmSync(directory, { recursive: true, force: true });
  }
});
