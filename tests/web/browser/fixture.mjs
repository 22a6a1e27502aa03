// SPDX-License-Identifier: Apache-2.0
// A dashboard with a store of its own, and Debian's chromium to look at it with.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const kChromium = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** Why the tests cannot run here, or false. */
export function missing() {
  if (!process.env.DASHBOARD_FIXTURE) return "DASHBOARD_FIXTURE does not name the dashboard_fixture program";
  return existsSync(kChromium) ? false : `no browser at ${kChromium}: install chromium, or set CHROMIUM`;
}

/** The dashboard_fixture program: `url`, `tell(command)` which waits until it is done, `freeze()` and `thaw()`, `stop()`. */
export async function startDashboard(...options) {
  const folder = mkdtempSync(join(tmpdir(), "ablate-browser-"));
  const child = spawn(process.env.DASHBOARD_FIXTURE, [join(folder, "results.db"), ...options], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const url = (await lines.next()).value;
  if (!url) throw new Error("dashboard_fixture did not start");
  return {
    url,
    async tell(command) {
      child.stdin.write(`${command}\n`);
      return (await lines.next()).value;
    },
    freeze: () => child.kill("SIGSTOP"),
    thaw: () => child.kill("SIGCONT"),
    async stop() {
      child.stdin.end();
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export function startBrowser() {
  return chromium.launch({
    executablePath: kChromium,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--no-first-run",
    ],
  });
}

/** A page, and the list of everything that went wrong in it. */
export async function openPage(browser, options = {}) {
  const context = await browser.newContext({
    viewport: { width: 1360, height: 900 },
    locale: "en-GB",
    ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const problems = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) problems.push(message.text());
  });
  return { page, problems };
}

/** Runs `check`, which asserts at once what a page may still be drawing, until it passes; its last failure after 60 s. */
export async function settles(check) {
  const until = Date.now() + 60_000;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > until) throw error;
      await new Promise((again) => setTimeout(again, 50));
    }
  }
}
