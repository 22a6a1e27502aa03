// SPDX-License-Identifier: Apache-2.0
// A dashboard with a store of its own, and Debian's chromium to look at it with.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before } from "node:test";
import { chromium } from "playwright-core";

const kChromium = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** Why the tests cannot run here, or false. */
export function missing() {
  if (!process.env.DASHBOARD_FIXTURE) return "DASHBOARD_FIXTURE does not name the dashboard_fixture program";
  return existsSync(kChromium) ? false : `no browser at ${kChromium}: install chromium, or set CHROMIUM`;
}

/** The dashboard_fixture program: `url`, its results file `store`, `tell(command)` which waits until it is done, `freeze()` and `thaw()`, `stop()`. */
export async function startDashboard(...options) {
  const folder = mkdtempSync(join(tmpdir(), "ablate-browser-"));
  const child = spawn(process.env.DASHBOARD_FIXTURE, [join(folder, "results.db"), ...options], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const url = (await lines.next()).value;
  if (!url) {
    rmSync(folder, { recursive: true, force: true });
    throw new Error("dashboard_fixture did not start");
  }
  return {
    url,
    store: join(folder, "results.db"),
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

/** `trusting`: of whatever certificate, also in the shared worker, of which the option of a page knows nothing. */
export function startBrowser({ trusting = false } = {}) {
  return chromium.launch({
    executablePath: kChromium,
    args: [
      ...(trusting ? ["--ignore-certificate-errors"] : []),
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

/** A page, the list of everything that went wrong in it, and the addresses below /api/v1 that it asked for. */
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
  const asked = [];
  page.on("request", (request) => {
    const address = new URL(request.url());
    if (address.pathname.startsWith("/api/v1/")) asked.push(address);
  });
  return { page, problems, asked };
}

/**
 * Runs `steps` on a new page and expects a clean console, but for what `expected` matches. `shown`: what to wait for on the page before;
 * other options are the browser's.
 */
export async function visit(browser, address, steps, { expected = /^$/, shown, ...options } = {}) {
  const { page, problems, asked } = await openPage(browser, options);
  await page.goto(address.href);
  if (shown) await page.locator(shown).first().waitFor();
  await steps(page, asked);
  const others = problems.filter((problem) => !expected.test(problem));
  assert.deepEqual(others, [], "nothing went wrong in the page");
  await page.context().close();
}

/** The console's line of an answer with status 4xx, for tests of what the server refuses. */
export const kRefused = /status of 4\d\d/;

/**
 * A dashboard and a browser for the tests of a `describe`, started before them and stopped after: what startDashboard returns, and
 * `browser`, `on(path, steps, options)`, which visits a page, `at(path)`, its address, and `served(path)`, what the API answers. `ready`:
 * called with it before the tests; `shown`: as of `visit`, for all pages.
 */
export function useDashboard({ ready = async () => {}, shown } = {}) {
  const dashboard = {
    at: (path) => new URL(path, dashboard.url),
    on: (path, steps, options = {}) => visit(dashboard.browser, dashboard.at(path), steps, { shown, ...options }),
    served: async (path) => (await fetch(dashboard.at(`/api/v1${path}`))).json(),
  };
  before(async () => {
    Object.assign(dashboard, await startDashboard());
    dashboard.browser = await startBrowser();
    await ready(dashboard);
  });
  after(async () => {
    await dashboard.browser?.close();
    await dashboard.stop?.();
  });
  return dashboard;
}

/** Runs `check`, which asserts at once what a page may still be drawing, until it passes; its last failure after `timeout` ms. */
export async function settles(check, { timeout = 60_000 } = {}) {
  const until = Date.now() + timeout;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > until) throw error;
      await new Promise((again) => setTimeout(again, 50));
    }
  }
}

/** Pastes a text into the editor, in place of what is there, and types its last letter. */
export async function write(page, text) {
  const editor = page.getByRole("textbox", { name: "Sweep file" });
  await editor.click();
  await page.keyboard.press("Control+A");
  await editor.evaluate((element, pasted) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", pasted);
    element.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true, composed: true }));
  }, text.slice(0, -1));
  await page.keyboard.press(text.at(-1) === "\n" ? "Enter" : text.at(-1));
}

const kScreenshots = process.env.SCREENSHOTS;

export const heading = (page, name) => page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
export const button = (page, name) => page.getByRole("button", { name, exact: true });
/** The notice in the corner that says what was done. */
export const said = (page, text) => page.locator(".said").filter({ hasText: text });

/** Keeps what the page shows, in both themes, where SCREENSHOTS names a folder. */
export async function picture(page, name) {
  if (!kScreenshots) return;
  mkdirSync(kScreenshots, { recursive: true });
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: `${kScreenshots}/${name}-${colorScheme}.png`, animations: "disabled" });
  }
}
