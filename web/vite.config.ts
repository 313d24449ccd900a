import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

// While developing, `npm run dev` shows the sources as they are; everything else comes from a real server.
const server = process.env.CATENA_SERVER ?? "http://127.0.0.1:8080";

/** Compresses what was built: it is embedded and served in this form only. */
function compressed(): Plugin {
  let directory = "";
  return {
    name: "compressed",
    apply: "build",
    configResolved: (config) => void (directory = config.build.outDir),
    closeBundle() {
      for (const name of readdirSync(directory, { recursive: true, encoding: "utf8" })) {
        const path = join(directory, name);
        if (statSync(path).isFile() && !path.endsWith(".gz")) {
          writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
        }
      }
    },
  };
}

interface Package {
  name: string;
  version: string;
  license?: string;
  dependencies?: Record<string, string>;
}

/** Writes down whose work is part of what was built, as their licences ask for. */
function licences(): Plugin {
  return {
    name: "licences",
    apply: "build",
    generateBundle() {
      const read = (directory: string) => JSON.parse(readFileSync(join(directory, "package.json"), "utf8")) as Package;
      const texts = new Map<string, string>();
      const open = Object.keys(read(import.meta.dirname).dependencies ?? {});
      for (let name = open.pop(); name !== undefined; name = open.pop()) {
        if (texts.has(name)) continue;
        const directory = join(import.meta.dirname, "node_modules", name);
        const about = read(directory);
        const file = readdirSync(directory).find((f) => /^licen[cs]e/i.test(f));
        const text = file ? readFileSync(join(directory, file), "utf8") : "";
        texts.set(name, `${name} ${about.version} (${about.license ?? "see below"})\n\n${text.trim()}\n`);
        open.push(...Object.keys(about.dependencies ?? {}));
      }
      const source = [...texts.keys()].sort().map((name) => texts.get(name)).join(`\n${"-".repeat(80)}\n\n`);
      this.emitFile({ type: "asset", fileName: "licences.txt", source });
    },
  };
}

export default defineConfig({
  base: "/ui/",
  plugins: [licences(), compressed()],
  build: {
    target: "es2023",
    manifest: true,
    // Workers and pictures stay files: pages may load nothing that is written into an address.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 1800,
  },
  worker: { format: "es" },
  server: {
    proxy: {
      "^/(?!ui/).*": { target: server, ws: true, changeOrigin: true },
    },
  },
});
