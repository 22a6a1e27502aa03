// SPDX-License-Identifier: Apache-2.0
// The dashboard as people use it, in a real browser. SCREENSHOTS=folder keeps pictures of its pages.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { missing, openPage, startBrowser, startDashboard } from "./fixture.mjs";
import { takePictures } from "./pictures.mjs";

const kScreenshots = process.env.SCREENSHOTS;

describe("the dashboard", { skip: missing() }, () => {
  let dashboard;
  let browser;
  before(async () => {
    dashboard = await startDashboard();
    browser = await startBrowser();
  });
  after(async () => {
    await browser?.close();
    await dashboard?.stop();
  });

  /** Runs `steps` on a new page and expects a clean console. */
  async function on(path, steps, options) {
    const { page, problems } = await openPage(browser, options);
    await page.goto(new URL(path, dashboard.url).href);
    await steps(page);
    assert.deepEqual(problems, [], "nothing went wrong in the page");
    await page.context().close();
  }

  const served = async (path) => (await fetch(new URL(`/api/v1${path}`, dashboard.url))).json();
  const runningRun = async () => `/runs/${(await served("/workers")).workers[0].runs[0]}`;
  const rowIds = (page) => page.locator("table.ablation tbody .row-id").allTextContents();

  test("lists the sweeps and leads to one", () =>
    on("/", async (page) => {
      await page.getByRole("link", { name: "msf-sharing" }).click();
      await page.getByRole("heading", { level: 1, name: "msf-sharing" }).waitFor();
      assert.equal(new URL(page.url()).pathname, "/sweeps/msf-sharing");
      await page.goBack();
      await page.getByRole("heading", { level: 1, name: "Sweeps" }).waitFor();
    }));

  test("shows a sweep's table: mean ± s.d., n, difference, the paper's value", () =>
    on("/sweeps/msf-sharing", async (page) => {
      const row = page.locator("table.ablation tbody tr").filter({ hasText: "MSF, Simplest" });
      await row.waitFor();
      const cells = await row.locator("td").allTextContents();
      const cell = (await served("/sweeps/msf-sharing/table")).rows[1].cells[0];
      assert.match(cells[0], /^\d+\.\d\d ± \d+\.\d\d$/);
      assert.equal(cells[0], cell.text, "the digits are the server's");
      assert.equal(cells[1], "2");
      assert.match(cells[2], /^−\d+\.\d\d$/);
      assert.equal(cells[3], "61.13");
      await page.getByRole("columnheader", { name: "paper: ImageNet, 100 epochs" }).first().waitFor();
      assert.equal(
        await page
          .locator("tr.baseline th")
          .innerText()
          .then((t) => t.includes("baseline")),
        true,
      );
      assert.equal(
        await page.getByRole("img", { name: /Line chart of val\/top1 over 600 optimiser steps/ }).count(),
        1,
      );
    }));

  test("sorts by keyboard, and the address keeps the order", () =>
    on("/sweeps/msf-sharing", async (page) => {
      await page.locator("table.ablation tbody tr").first().waitFor();
      assert.deepEqual((await rowIds(page)).slice(0, 2), ["orig", "a"]);
      const link = page.locator("table.ablation thead a", { hasText: "here" });
      await link.focus();
      await page.keyboard.press("Enter");
      await page.waitForURL(/sort=params/);
      assert.equal((await rowIds(page))[0], "a");
      await link.focus();
      await page.keyboard.press("Enter");
      await page.waitForURL(/sort=-params/);
      assert.equal((await rowIds(page)).at(-1), "a");
      await page.reload();
      await page.locator("table.ablation th[aria-sort=descending]").waitFor();
      assert.equal((await rowIds(page)).at(-1), "a");
    }));

  test("follows what is published without a reload", () =>
    on("/sweeps/msf-sharing", async (page) => {
      const completed = page.locator(".summary", { hasText: "10 of 14 trials completed" });
      await completed.waitFor();
      await page.evaluate(() => (window.stillTheSamePage = true));
      await dashboard.tell("advance 170");
      await page.locator(".summary", { hasText: "11 of 14 trials completed" }).waitFor();
      const row = page.locator("table.ablation tbody tr").filter({ hasText: "QKKKQ" });
      await row
        .locator("td", { hasText: /^\d+\.\d\d ± \d+\.\d\d$/ })
        .first()
        .waitFor();
      assert.equal(await page.evaluate(() => window.stillTheSamePage), true);
    }));

  test("a row leads to its runs, a run shows its curves, configuration and log", () =>
    on("/sweeps/msf-sharing", async (page) => {
      const row = page.locator("table.ablation tbody tr").filter({ hasText: "QKKKQ" });
      await row.locator("a.value").first().click();
      await page.waitForURL(/row=f/);
      const trials = page.locator("table.trials tbody tr");
      assert.equal(await trials.count(), 2);
      await trials
        .last()
        .getByRole("link", { name: /^run \d+/ })
        .click();
      await page.getByRole("heading", { level: 1, name: /^Run \d+/ }).waitFor();
      await page.getByRole("img", { name: /Line chart of top1/ }).waitFor();
      await page.getByRole("region", { name: "Configuration" }).getByText('"QKKKQ"').waitFor();
      await page.getByRole("log").getByText("resumed at step 300").waitFor();
      assert.equal(
        await page.getByText("worker cellar-3 was not heard for 30 s").count(),
        1,
        "the lost attempt is told",
      );
    }));

  test("a log that is followed grows with its run", async () =>
    on(await runningRun(), async (page) => {
      const log = page.getByRole("log");
      await log.getByText("data: 4000 images").waitFor();
      const before = (await log.innerText()).length;
      await dashboard.tell("advance 60");
      await page.waitForFunction(
        (length) => document.querySelector("[role=log]").innerText.length > length,
        before,
      );
      assert.equal(await log.evaluate((e) => e.scrollHeight - e.scrollTop - e.clientHeight < 4), true);
    }));

  test("a chart can be read as a table", () =>
    on("/sweeps/msf-sharing?metric=loss", async (page) => {
      await page.getByRole("button", { name: "Show as table" }).first().click();
      const table = page.getByRole("region", { name: "val/loss as a table" });
      assert.ok((await table.locator("tbody tr").count()) >= 12);
      await page.getByRole("button", { name: "Show as chart" }).click();
      await page.getByRole("img", { name: /val\/loss/ }).waitFor();
    }));

  test("rows are switched off in the charts by keyboard", () =>
    on("/sweeps/msf-sharing", async (page) => {
      const button = page
        .getByRole("group", { name: "Rows shown in the charts" })
        .getByRole("button", { name: "orig" });
      await button.focus();
      await page.keyboard.press("Space");
      await page.waitForURL(/hide=orig/);
      assert.equal(await button.getAttribute("aria-pressed"), "false");
      await page.getByRole("img", { name: /val\/top1 .* 6 lines/ }).waitFor();
    }));

  test("workers and what runs on them", () =>
    on("/workers", async (page) => {
      await page.getByText("2 of 3 workers connected").waitFor();
      await page
        .getByRole("link", { name: /^run \d+$/ })
        .first()
        .click();
      await page.getByRole("heading", { level: 1, name: /^Run \d+/ }).waitFor();
    }));

  test("what is not there is said in the server's words", async () => {
    const { page } = await openPage(browser);
    await page.goto(new URL("/sweeps/msf-sharin", dashboard.url).href);
    await page.getByRole("alert").getByText("msf-sharing").first().waitFor();
    await page.context().close();
  });

  test("pictures of its pages", { skip: kScreenshots ? false : "SCREENSHOTS names no folder" }, () =>
    takePictures(browser, dashboard.url, kScreenshots),
  );
});

describe("a dashboard beside a writer", { skip: missing() }, () => {
  test("sees commits that nobody publishes, and says when its server is gone", async () => {
    const dashboard = await startDashboard("0", "--watch");
    const browser = await startBrowser();
    const { page } = await openPage(browser);
    await page.goto(dashboard.url);
    await page.getByRole("link", { name: "msf-sharing" }).waitFor();
    await dashboard.tell("submit later");
    await page.getByRole("link", { name: "later" }).waitFor();
    await dashboard.stop();
    await page.getByText(/No connection to the server since/).waitFor();
    assert.equal(await page.getByRole("link", { name: "msf-sharing" }).count(), 1, "what was known stays");
    await browser.close();
  });
});
