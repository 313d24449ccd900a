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

export default defineConfig({
  base: "/ui/",
  plugins: [compressed()],
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
