import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { expect, test } from "@playwright/test";

interface Chunk {
  file: string;
  isEntry?: boolean;
  imports?: string[];
  dynamicImports?: string[];
  css?: string[];
}

/** What a browser loads with a chunk, in bytes as they are sent. */
function weight(site: string, manifest: Record<string, Chunk>, first: string): { bytes: number; files: string[] } {
  const seen = new Set<string>();
  const files = new Set<string>();
  const open = [first];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (seen.has(name)) continue;
    seen.add(name);
    const chunk = manifest[name]!;
    [chunk.file, ...(chunk.css ?? [])].forEach((file) => files.add(file));
    open.push(...(chunk.imports ?? []));
  }
  const bytes = [...files].reduce((sum, file) => sum + gzipSync(readFileSync(join(site, file)), { level: 9 }).length, 0);
  return { bytes, files: [...files] };
}

test("the first load is small, and the editor and ELK are not part of it", () => {
  const site = mkdtempSync(join(tmpdir(), "catena-site-"));
  try {
    execFileSync("node", ["node_modules/vite/bin/vite.js", "build", "--emptyOutDir", "--outDir", site], { stdio: "pipe" });
    const manifest = JSON.parse(readFileSync(join(site, ".vite", "manifest.json"), "utf8")) as Record<string, Chunk>;
    const entry = Object.keys(manifest).find((name) => manifest[name]!.isEntry)!;
    const { bytes, files } = weight(site, manifest, entry);
    console.log(`first load: ${(bytes / 1000).toFixed(1)} kB in ${files.length} files`);
    expect(bytes).toBeLessThanOrEqual(250_000);
    expect(files.join(" ")).not.toMatch(/elk|Compose|xyflow|Yaml/i);
  } finally {
    rmSync(site, { recursive: true, force: true });
  }
});
