import { defineConfig } from "@playwright/test";

// A browser of the system, on this machine only: it must not look for anything elsewhere.
const alone = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export default defineConfig({
  testDir: "tests",
  // Tests share two processors with the servers they start.
  workers: 1,
  timeout: 120_000,
  expect: { timeout: 20_000 },
  reporter: [["list"], ["json", { outputFile: "test-results/report.json" }]],
  use: {
    viewport: { width: 1280, height: 800 },
    launchOptions: { executablePath: process.env.CATENA_CHROMIUM ?? "/usr/bin/chromium", args: alone },
    screenshot: "only-on-failure",
  },
});
