import { defineConfig } from "vite";

// While developing, `npm run dev` shows the sources as they are; everything else comes from a real server.
const server = process.env.CATENA_SERVER ?? "http://127.0.0.1:8080";

export default defineConfig({
  base: "/ui/",
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
