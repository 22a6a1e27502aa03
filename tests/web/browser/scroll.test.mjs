// SPDX-License-Identifier: Apache-2.0
// Where a page is scrolled to: at its top when a link leads there, and where it was on the way back.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { missing, settles, useDashboard } from "./fixture.mjs";

describe("scrolling", { skip: missing() }, () => {
  const dashboard = useDashboard({ ready: ({ tell }) => tell("long five-thousand") });
  const { on, served } = dashboard;

  const heading = (page, name) => page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
  const nav = (page, name) => page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name, exact: true }).click();
  const scrolled = (page) => page.evaluate(() => Math.round(scrollY));
  const isAt = (page, place) => settles(async () => assert.ok(Math.abs((await scrolled(page)) - place) <= 2, `at ${await scrolled(page)}`));
  const still = (page) => page.waitForFunction(() => !document.querySelector(".skeleton"));
  /** Answers come late, so that a page is short at first. */
  const late = (page) =>
    page.route("**/api/v1/sweeps/**", async (route) => {
      await new Promise((later) => setTimeout(later, 300));
      await route.continue();
    });
  const focused = (page) => page.evaluate(() => document.activeElement?.tagName);

  test("a page that a link leads to begins at its top, with the focus at its heading", () =>
    on("/sweeps/msf-sharing", async (page) => {
      await still(page);
      const [run] = (await served("/runs?limit=1&sweep=msf-sharing")).runs;
      for (const [open, name] of [
        [() => nav(page, "Tables"), "Tables of the papers"],
        [() => nav(page, "Sweeps"), "Sweeps"],
        [() => page.getByRole("link", { name: "msf-sharing" }).click(), "msf-sharing"],
        [() => page.locator(`a[href="/runs/${run.id}"]`).first().click(), `Run ${run.id}`],
        [() => nav(page, "Settings"), "Settings"],
      ]) {
        await still(page);
        await page.mouse.wheel(0, 400);
        await open();
        await page.getByRole("heading", { level: 1, name }).waitFor();
        await settles(async () => assert.deepEqual([await scrolled(page), await focused(page)], [0, "H1"], name));
      }
    }));

  test("Back and forward return to where a page was scrolled to, also where its content comes late", () =>
    on("/sweeps/msf-sharing", async (page) => {
      await still(page);
      await page.getByRole("img", { name: /Line chart/ }).first().waitFor();
      await page.evaluate(() => scrollTo(0, 640));
      await isAt(page, 640);
      await late(page);
      await nav(page, "Tables");
      await heading(page, "Tables of the papers");
      await isAt(page, 0);
      await still(page);
      await page.evaluate(() => scrollTo(0, 210));
      await isAt(page, 210);
      await page.goBack();
      await heading(page, "msf-sharing");
      await isAt(page, 640);
      await page.waitForTimeout(600); // whatever is drawn after that
      await isAt(page, 640);
      await page.goForward();
      await isAt(page, 210);
    }));

  test("a reload stays where it is, and whoever scrolls meanwhile is let", () =>
    on("/sweeps/msf-sharing", async (page) => {
      await still(page);
      await page.getByRole("img", { name: /Line chart/ }).first().waitFor();
      await page.evaluate(() => scrollTo(0, 500));
      await isAt(page, 500);
      await late(page);
      await page.reload();
      await isAt(page, 500);
      await page.mouse.move(600, 20); // over the bar, which scrolls nothing itself
      await page.mouse.wheel(0, -300);
      await isAt(page, 200);
      await page.waitForTimeout(500);
      await isAt(page, 200);
    }));

  test("a long table returns to its row", () =>
    on("/sweeps/five-thousand", async (page) => {
      const box = page.getByRole("region", { name: "Rows of the ablation table" });
      await box.waitFor();
      const first = () => page.locator("table.ablation tbody tr:not(.gap)").nth(15).getAttribute("aria-rowindex");
      const boxAt = (place) =>
        settles(async () => {
          const top = await box.evaluate((element) => element.scrollTop);
          assert.ok(Math.abs(top - place) <= 2, `at ${top} in place of ${place}`);
        });
      // each group that is read has a heading, which moves what is below it
      const lines = () => page.locator("table.ablation").getAttribute("aria-rowcount");
      await settles(async () => {
        const before = await lines();
        await page.waitForTimeout(1000);
        assert.equal(await lines(), before);
      });
      await box.evaluate((element) => element.scrollTo(0, 68_000));
      await settles(async () => assert.ok(Number(await first()) > 1900));
      const row = await first();
      const place = await box.evaluate((element) => element.scrollTop); // rows that were measured may have moved it
      await late(page);
      await nav(page, "Workers");
      await heading(page, "Workers");
      await isAt(page, 0);
      await page.goBack();
      await boxAt(place);
      await settles(async () => assert.equal(await first(), row));
      await page.locator("table.ablation tbody tr:not(.gap) .row-id").first().waitFor();
    }));

  test("a link to a part of another page shows it when it is there", () =>
    on("/workers", async (page) => {
      await late(page);
      await page.goto(dashboard.at("/sweeps/msf-sharing#trials").href);
      await page.locator("#trials").waitFor();
      await settles(async () => {
        const top = await page.locator("#trials").evaluate((element) => element.getBoundingClientRect().top);
        assert.ok(top >= 0 && top < 300, `at ${top}`);
      });
    }));
});
