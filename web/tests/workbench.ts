import { test as base, expect, type Browser, type Locator, type Page } from "@playwright/test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import AxeBuilder from "@axe-core/playwright";
import { Server } from "./server";

export { expect, Server };

/** Where pictures for the book go, if they are wanted. */
const PICTURES = process.env.CATENA_PICTURES;

/** A page that must not complain: whatever it writes to the console as an error fails the test. */
export class Window {
  private readonly complaints: string[] = [];

  constructor(
    readonly page: Page,
    private readonly server: Server,
  ) {
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") this.complaints.push(message.text());
    });
    page.on("pageerror", (error) => this.complaints.push(String(error)));
  }

  /** Opens a place in the workbench, signed in with a token. */
  async open(place: string, token = this.server.owner): Promise<void> {
    await this.page.goto(`${this.server.url}/ui${place}#token=${token}`);
    await this.page.getByRole("navigation", { name: "Sections" }).waitFor();
  }

  /** How something stands: the first place on the page that says it is so. */
  state(state: string): Locator {
    return this.page.locator(`[data-state="${state}"]`).first();
  }

  /** Nothing that would keep somebody from using the page, and no mistake in the console. */
  async check(): Promise<void> {
    const found = await new AxeBuilder({ page: this.page }).analyze();
    const serious = found.violations.filter((v) => v.impact === "serious" || v.impact === "critical");
    const words = serious.map((v) => `${v.id}: ${v.help}\n${v.nodes.map((n) => `  ${n.html}`).join("\n")}`);
    expect(words.join("\n")).toBe("");
    this.expectQuiet();
  }

  /** Nothing was complained about so far, apart from what is expected. */
  expectQuiet(but?: RegExp): void {
    expect(this.complaints.filter((c) => !but?.test(c))).toEqual([]);
  }

  /** Takes a picture for the book. */
  async picture(name: string): Promise<void> {
    if (!PICTURES) return;
    mkdirSync(PICTURES, { recursive: true });
    await this.page.screenshot({ path: join(PICTURES, `workbench-${name}.png`), animations: "disabled" });
  }
}

/** Opens another browser window, as another person would. */
export async function another(browser: Browser, server: Server): Promise<Window> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  return new Window(await context.newPage(), server);
}

export const test = base.extend<{ window: Window }, { server: Server }>({
  server: [
    async ({}, use) => {
      const server = await Server.start();
      await use(server);
      await server.end();
    },
    { scope: "worker" },
  ],
  window: async ({ page, server }, use) => {
    await use(new Window(page, server));
  },
});
