// SPDX-License-Identifier: Apache-2.0
/// <reference types="vitest/config" />
import { defineConfig } from "vite";

// `npm run dev` shows the app against a running `ablate dashboard --port 8080`; the build is embedded in the binary.
export default defineConfig({
  // the policy that the server sends forbids inline resources: everything is a file of its own
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  worker: { format: "es" },
  // tests read the colours of the themes
  test: { css: { include: [/styles\/base\.css/] } },
  server: { proxy: { "/api": "http://127.0.0.1:8080" } },
});
