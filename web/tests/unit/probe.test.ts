import { expect, test } from "@playwright/test";
import { trace } from "../../src/runs/timelineTrace";
import { prettyJson } from "../../src/runs/files/jsonText";
test("probe", () => { expect(typeof trace).toBe("function");
  const s = JSON.stringify({a: "x".repeat((1<<20)-20)}); expect(prettyJson(s)).not.toBeNull(); });
