// SPDX-License-Identifier: Apache-2.0
// A table that its reader pivots: by mouse and keys, kept in the address, copied as it is seen. SCREENSHOTS=folder keeps pictures.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { describe, test } from "node:test";
import { violationsOf } from "./axe.mjs";
import { kRefused, missing, picture, settles, useDashboard } from "./fixture.mjs";

const kAblate = process.env.ABLATE;

describe("a pivot that is picked", { skip: missing() }, () => {
  const dashboard = useDashboard({
    ready: ({ tell }) => tell("factors study"),
    shown: "table.ablation tbody tr",
  });
  const { on } = dashboard;
  const rows = async (page) => (await page.locator("table.ablation tbody th .row-name").allInnerTexts()).map((text) => text.trim());
  const heads = async (page) =>
    (await page.locator("table.ablation thead tr").first().locator("th").allInnerTexts()).map((text) => text.replace(/\s*[▾▴]/, "").trim());
  const menu = (page) => page.locator("summary", { hasText: "Pivot" });
  const printed = (...flags) => execFileSync(kAblate, ["table", "study", ...flags, "--store", dashboard.store], { encoding: "utf8" });
  const kByKernel = ["Row", "kernel=dot: top-1 (%)", "kernel=gaussian: top-1 (%)", "Runs by seed"];

  test("a factor goes to the columns and back, and Back undoes it", () =>
    on("/sweeps/study?sort=-acc", async (page) => {
      await settles(async () => assert.equal((await rows(page)).length, 5));
      await menu(page).click();
      await page.getByRole("checkbox", { name: "kernel 2 levels" }).check();
      await settles(async () => assert.deepEqual(await heads(page), kByKernel));
      assert.deepEqual(await rows(page), ["groups=1", "groups=2", "groups=4"]);
      const address = new URL(page.url()).searchParams;
      assert.deepEqual([address.get("pivot"), address.get("sort")], ["kernel", null], "sorted by a column that is gone");
      await page.getByText("Columns: kernel. Rows: groups.").waitFor();
      await picture(page, "pivot-picked");
      await page.getByRole("checkbox", { name: "groups 3 levels" }).check();
      await settles(async () => assert.deepEqual(await rows(page), ["all"]));
      assert.equal((await heads(page)).length, 7, "two by three levels but for one that no row has");
      assert.equal(new URL(page.url()).searchParams.get("pivot"), "kernel,groups");
      await page.getByRole("checkbox", { name: "kernel 2 levels" }).uncheck();
      await settles(async () => assert.deepEqual(await rows(page), ["kernel=dot", "kernel=gaussian"]));
      await page.goBack();
      await settles(async () => assert.deepEqual(await rows(page), ["all"]));
      await page.goBack();
      await settles(async () => assert.deepEqual(await heads(page), kByKernel));
      await page.getByRole("link", { name: "One line per row" }).click();
      await settles(async () => assert.equal((await rows(page)).length, 5));
      assert.equal(new URL(page.url()).search, "");
    }));

  test("an address has it, with differences to each row's own baseline", () =>
    on("/sweeps/study?pivot=kernel", async (page) => {
      await settles(async () => assert.deepEqual(await heads(page), kByKernel));
      const cells = page.locator("table.ablation tbody tr", { hasText: "groups=2" }).locator("td");
      const texts = await cells.allInnerTexts();
      assert.match(texts[0], /^64\.05 ± 0\.07/);
      assert.match(texts[2], /^\+4\.00/, "of dot");
      assert.match(texts[3], /^76\.05/);
      assert.match(texts[5], /^\+16\.00/, "from kernel=dot,groups=1 as well, not from the line above");
      assert.equal(await page.locator("th .tag", { hasText: "baseline" }).count(), 0, "no line is it");
      const baseline = page.locator("table.ablation td.baseline");
      assert.equal(await baseline.count(), 1, "a cell is");
      assert.match(await baseline.innerText(), /^baseline\s+60\.05/);
      assert.deepEqual(await page.locator("table.ablation tbody tr").first().locator(".run-level").allInnerTexts(), ["kernel=dot", "kernel=gaussian"]);
      await page.locator("ul.notes", { hasText: "pivoted by kernel: each cell is compared with row kernel=dot,groups=1" }).waitFor();
      assert.match(
        await page.locator("table.ablation tbody tr", { hasText: "groups=4" }).locator("td").nth(3).innerText(),
        /no row has kernel = gaussian here/,
      );
    }));

  test("by keys alone, and spoken", () =>
    on("/sweeps/study", async (page) => {
      await menu(page).focus();
      await page.keyboard.press("Enter");
      await page.getByRole("checkbox", { name: "kernel 2 levels" }).waitFor();
      await page.keyboard.press("Tab");
      await page.keyboard.press("Space");
      await settles(async () => assert.deepEqual(await heads(page), kByKernel));
      assert.equal(
        await page.evaluate(() => document.activeElement?.type),
        "checkbox",
        "who goes by keys stays where they are",
      );
      assert.equal(await page.getByRole("group", { name: "Factors along the columns" }).count(), 1);
      for (const theme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme: theme });
        assert.deepEqual(await violationsOf(page, theme), [], theme);
      }
      await page.keyboard.press("Escape");
      assert.equal(await page.evaluate(() => document.activeElement?.tagName), "SUMMARY");
      assert.match(await menu(page).innerText(), /Pivot: kernel/);
    }));

  test("what is copied is what ablate table prints of it", { skip: !kAblate && "ABLATE names no program" }, () =>
    on(
      "/sweeps/study?pivot=groups,kernel",
      async (page) => {
        await settles(async () => assert.deepEqual(await rows(page), ["all"]));
        for (const [title, format] of [
          ["LaTeX", "latex"],
          ["Markdown", "markdown"],
          ["CSV", "csv"],
          ["Text", "text"],
        ]) {
          await page.locator("summary", { hasText: "Copy table" }).click();
          await page.getByRole("button", { name: `Copy as ${title}` }).click();
          await page.getByRole("status").filter({ hasText: `of ${title}.` }).waitFor();
          await page.keyboard.press("Escape");
          assert.equal(
            await page.evaluate(() => navigator.clipboard.readText()),
            printed("--format", format, "--pivot", "groups,kernel"),
            title,
          );
        }
        assert.equal(printed("--pivot", "none"), printed("--long"));
      },
      { permissions: ["clipboard-read", "clipboard-write"] },
    ),
  );

  test("a factor that there is not is said, with the nearest, and another can be picked", () =>
    on(
      "/sweeps/study?pivot=kernl",
      async (page) => {
        await page.getByRole("alert").filter({ hasText: "did you mean 'kernel'?" }).waitFor();
        await menu(page).click();
        await page.getByRole("checkbox", { name: "kernel 2 levels" }).check();
        await settles(async () => assert.deepEqual(await heads(page), kByKernel));
        assert.equal(await page.getByRole("alert").count(), 0);
      },
      { expected: kRefused, shown: "h1" },
    ));

  test("what a closed menu would have is not made", () =>
    on("/sweeps/study?brush=in~factor.kernel~dot&chart=bars", async (page) => {
      await page.locator("#table-heading .brush-chip").filter({ hasText: "3 of 5 rows" }).waitFor();
      assert.equal(await page.locator(".menu-panel *").count(), 0);
      await page.locator("summary", { hasText: "Copy table" }).click();
      await page.getByRole("link", { name: "Download as CSV" }).waitFor();
    }));
});
