// SPDX-License-Identifier: Apache-2.0
// Signing in and out of a dashboard as people do, in a real browser.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, describe, test } from "node:test";
import { missing, openPage, settles, startBrowser, startDashboard } from "./fixture.mjs";

describe("signing in", { skip: missing() }, () => {
  let dashboard;
  let browser;
  before(async () => {
    browser = await startBrowser();
  });
  after(async () => {
    await browser?.close();
  });

  /** Runs `steps` on a new page of a new dashboard where people sign in. */
  async function on(path, steps) {
    dashboard = await startDashboard("0", "--sign-in");
    // the certificate is of an authority that no browser knows
    const { page } = await openPage(browser, { ignoreHTTPSErrors: true });
    const at = (where) => new URL(where, dashboard.url).href;
    try {
      await page.goto(at(path));
      await steps(page, at);
    } finally {
      await page.context().close();
      await dashboard.stop();
    }
  }
  const pathOf = (page) => new URL(page.url()).pathname;
  const type = async (page, token) => {
    await page.waitForFunction(() => document.activeElement?.id === "token");  // it has the focus once the page is laid out
    await page.keyboard.type(token);
    await page.keyboard.press("Enter");
  };
  const heading = (page, name) => page.getByRole("heading", { level: 1, name }).waitFor();

  test("leads to the form, back to where it was, and out again, by keyboard", () =>
    on("/sweeps/msf-sharing", async (page) => {
      assert.equal(pathOf(page), "/sign-in");
      await type(page, "abl_nobody");
      await page.getByRole("alert").filter({ hasText: "this token is not known here" }).waitFor();
      await type(page, "abl_vera");
      await heading(page, "msf-sharing");
      await settles(async () => assert.equal(pathOf(page), "/sweeps/msf-sharing"));
      await page.locator(".live-live").waitFor();
      await page.getByText("vera").waitFor();
      assert.equal(await page.evaluate(() => document.cookie), "", "no script sees the cookie");
      const [cookie] = await page.context().cookies();
      assert.ok(cookie.name.startsWith("__Host-") && cookie.httpOnly && cookie.secure && cookie.sameSite === "Strict");
      await page.getByRole("button", { name: "Sign out" }).click();
      await heading(page, "Sign in to ablate");
      await page.goto(new URL("/workers", dashboard.url).href);
      await settles(async () => assert.equal(pathOf(page), "/sign-in"));
    }));

  test("says on an open page that the session has ended, and leads to the form", () =>
    on("/sign-in", async (page) => {
      await type(page, "abl_vera");
      await heading(page, "Home");
      await page.locator(".live-live").waitFor();
      await dashboard.tell("revoke");
      const banner = page.getByRole("alert").filter({ hasText: "You are signed out: this token is revoked." });
      await banner.waitFor();
      await banner.getByRole("link", { name: "Sign in" }).click();
      await heading(page, "Sign in to ablate");
      await type(page, "abl_vera");
      await page.getByRole("alert").filter({ hasText: "this token is revoked" }).waitFor();
    }));

  test("says on a page too many that it is not kept up to date, and why, until there is room", () =>
    on("/sign-in", async (page, at) => {
      await type(page, "abl_vera");
      await heading(page, "Home");
      await page.locator(".live-live").waitFor();
      await page.evaluate(
        () =>
          new Promise((open) => {
            window.second = new EventSource("/api/v1/events");
            window.second.onopen = open;
          }),
      );
      // tabs of one browser share a stream: it takes another
      const { page: late } = await openPage(browser, { ignoreHTTPSErrors: true });
      await late.goto(at("/sign-in?to=/workers"));
      await type(late, "abl_vera");
      const banner = late.getByRole("status").filter({
        hasText: "This page is not kept up to date: 2 pages of this dashboard are open with this token",
      });
      await banner.waitFor();
      await heading(late, "Workers");  // all else is answered
      await page.evaluate(() => window.second.close());
      await late.locator(".live-live").waitFor();
      await banner.waitFor({ state: "detached" });
      await late.context().close();
    }));

  test("who signs in again in one tab is live in all of them", () =>
    on("/sign-in", async (page, at) => {
      await type(page, "abl_vera");
      await heading(page, "Home");
      await page.locator(".live-live").waitFor();
      const other = await page.context().newPage();
      await other.goto(at("/workers"));
      await other.locator(".live-live").waitFor();
      await page.getByRole("button", { name: "Sign out" }).click();
      await heading(page, "Sign in to ablate");
      await other.getByRole("alert").filter({ hasText: "You are signed out" }).waitFor();
      await type(page, "abl_vera");
      await heading(page, "Home");
      await page.locator(".live-live").waitFor();
      await other.locator(".live-live").waitFor();
    }));

  test("opens a link of another site for who is signed in", () =>
    on("/sign-in", async (page, at) => {
      await type(page, "abl_vera");
      await heading(page, "Home");
      const other = createServer((_, answer) =>
        answer.writeHead(200, { "Content-Type": "text/html" }).end(`<a href="${at("/workers")}">workers</a>`),
      );
      await new Promise((ready) => other.listen(0, "127.0.0.1", ready));
      try {
        // another site by its name: 127.0.0.1 is the dashboard's
        await page.goto(`http://localhost:${other.address().port}/`);
        await page.getByRole("link", { name: "workers" }).click();
        await heading(page, "Workers");
        await settles(async () => assert.equal(pathOf(page), "/workers"));
      } finally {
        other.close();
      }
    }));
});
