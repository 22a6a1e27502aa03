// SPDX-License-Identifier: Apache-2.0
// The ablation table: what is chosen of it, what is copied, and that a long one is whole. SCREENSHOTS=folder keeps pictures.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { missing, picture, settles, useDashboard } from "./fixture.mjs";

const kScreenshots = process.env.SCREENSHOTS;
const kAblate = process.env.ABLATE;

describe("the ablation table", { skip: missing() }, () => {
  const dashboard = useDashboard({
    ready: ({ tell }) => tell("long thousands"),
    shown: "table.ablation tbody tr",
  });
  const { on, served } = dashboard;
  const keep = async (page, name) =>
    kScreenshots && page.screenshot({ path: `${kScreenshots}/${name}.png`, animations: "disabled" });
  const rowIds = (page) => page.locator("table.ablation tbody .row-id").allTextContents();
  const headings = async (page) =>
    (await page.locator("table.ablation thead th").allInnerTexts()).map((text) => text.replace(/\s*[▾▴]/, "").trim());

  const printed = (...flags) =>
    execFileSync(kAblate, ["table", ...flags, "--store", dashboard.store], { encoding: "utf8", maxBuffer: 1 << 26 });
  async function copied(page, title) {
    await page.locator("summary", { hasText: "Copy table" }).click();
    await page.getByRole("button", { name: `Copy as ${title}` }).click();
    await page.getByRole("status").filter({ hasText: `of ${title}.` }).waitFor();
    await page.keyboard.press("Escape");
    return page.evaluate(() => navigator.clipboard.readText());
  }
  const clipboard = { permissions: ["clipboard-read", "clipboard-write"] };

  test("what is copied is what ablate table prints, to the byte", { skip: !kAblate && "ABLATE names no program" }, () =>
    on(
      "/sweeps/msf-sharing",
      async (page) => {
        for (const [title, format] of [
          ["LaTeX", "latex"],
          ["Markdown", "markdown"],
          ["CSV", "csv"],
          ["Text", "text"],
        ])
          assert.equal(await copied(page, title), printed("msf-sharing", "--format", format), title);
      },
      clipboard,
    ),
  );

  test("also of what was chosen, and what is downloaded", { skip: !kAblate && "ABLATE names no program" }, () =>
    on(
      "/sweeps/msf-sharing?sort=-params&without=loss&find=msf&complete=1&parts=sd,delta,paper",
      async (page) => {
        const flags = ["--sort", "-params", "--without", "loss", "--find", "msf", "--complete"];
        const columns = ["--columns", "value,paper"];
        assert.equal(
          await copied(page, "Markdown"),
          printed("msf-sharing", "--format", "markdown", ...flags, ...columns),
        );
        assert.equal(await copied(page, "CSV"), printed("msf-sharing", "--format", "csv", ...flags));
        const markdown = printed("msf-sharing", "--format", "markdown", ...flags);
        const rows = markdown.split("\n").filter((line) => /^\| [a-z]+ \|/.test(line)).slice(1);
        assert.deepEqual(
          await rowIds(page),
          rows.map((line) => line.split(" ")[1]),
          "the rows of the page are those that are printed",
        );
        await page.locator("summary", { hasText: "Copy table" }).click();
        const [download] = await Promise.all([
          page.waitForEvent("download"),
          page.getByRole("link", { name: "Download as HTML page" }).click(),
        ]);
        assert.equal(download.suggestedFilename(), "msf-sharing.html");
        assert.equal(
          readFileSync(await download.path(), "utf8"),
          printed("msf-sharing", "--format", "html", ...flags, ...columns),
        );
      },
      clipboard,
    ),
  );

  test("on a phone the menus stay on the screen, and so does the list of sweeps", async () => {
    const viewport = { width: 390, height: 800 };
    const fits = (page) => page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth);
    await on(
      "/sweeps/msf-sharing",
      async (page) => {
        for (const name of ["Columns", "Pivot", "Copy table"]) {
          await page.locator(".table-controls summary", { hasText: name }).click();
          const box = await page.locator(".menu[open] .menu-panel").boundingBox();
          assert.ok(box.x >= 0 && box.x + box.width <= viewport.width, `${name}: ${JSON.stringify(box)}`);
          await picture(page, `menu-390-${name.toLowerCase().replace(" ", "-")}`);
        }
        assert.ok(await fits(page));
      },
      { viewport },
    );
    await on(
      "/sweeps",
      async (page) => {
        await page.getByRole("group", { name: "Common queries" }).waitFor();
        await picture(page, "sweeps-390");
        assert.ok(await fits(page));
      },
      { viewport, shown: "main tbody tr" },
    );
  });

  test("rows that a brush keeps are copied alone", () =>
    on(
      "/sweeps/msf-sharing?chart=bars&brush=rows~b~a",
      async (page) => {
        await page.locator("#table-heading .brush-chip").filter({ hasText: "2 of 7 rows" }).waitFor();
        const all = await (await fetch(dashboard.at("/api/v1/sweeps/msf-sharing/printed?format=csv"))).text();
        const [head, ...rows] = all.split("\n");
        const kept = rows.filter((row) => /^(?:a|b),/.test(row));
        assert.equal(kept.length, 2);
        assert.equal(await copied(page, "CSV"), [head, ...kept, ""].join("\n"));
      },
      clipboard,
    ),
  );

  test("columns, their parts and rows are chosen by keyboard, kept in the address, and come back", () =>
    on("/sweeps/msf-sharing", async (page) => {
      await page.locator("summary", { hasText: "Columns" }).focus();
      await page.keyboard.press("Enter");
      await page.getByRole("checkbox", { name: "loss" }).uncheck();
      await page.getByRole("checkbox", { name: "95 % interval" }).check();
      await page.getByRole("checkbox", { name: "n (seeds)" }).uncheck();
      await keep(page, "table-columns");
      await page.keyboard.press("Escape");
      assert.equal(await page.evaluate(() => document.activeElement?.tagName), "SUMMARY");
      const chosen = await headings(page);
      assert.ok(!chosen.includes("loss"), chosen.join());
      assert.ok(!chosen.includes("n"), chosen.join());
      assert.ok(chosen.includes("95 % interval"), chosen.join());
      await page.getByRole("checkbox", { name: "Complete rows only" }).check();
      await page.keyboard.press("/");
      await page.keyboard.type("MSF 2-mat");
      await settles(async () => assert.deepEqual(await rowIds(page), ["b"]));
      const address = new URL(page.url());
      assert.deepEqual(address.searchParams.getAll("without"), ["loss"]);
      assert.equal(address.searchParams.get("parts"), "sd,delta,paper,interval");
      await page.reload();
      await settles(async () => assert.deepEqual(await rowIds(page), ["b"]));
      assert.deepEqual(await headings(page), chosen);
      await page.getByRole("searchbox").fill("nothing like it");
      await page.getByText("No row matches.").waitFor();
      await page.getByRole("link", { name: "Show all rows" }).click();
      await settles(async () => assert.equal((await rowIds(page)).length, 7));
      await page.goBack();
      await page.getByText("No row matches.").waitFor();
    }));

  test("a difference says whether it is significant, and its p, to who does not see colours", () =>
    on("/sweeps/msf-sharing", async (page) => {
      const { rows } = await served("/sweeps/msf-sharing/table");
      const tested = rows.find((row) => row.cells[0].p_corrected !== undefined);
      assert.ok(tested, "some row is tested");
      const cell = page.locator("table.ablation tbody tr").filter({ hasText: tested.label }).locator("td").nth(2);
      assert.match(await cell.textContent(), /, (no significant|better|worse).* corrected p (= 0\.\d+|< 0\.0001)$/);
      assert.match(await cell.locator("span").first().getAttribute("title"), /corrected p/);
    }));

  test("of 5,000 rows those in sight are in the page, and all of them can be seen", () =>
    on("/sweeps/thousands", async (page) => {
      const box = page.getByRole("region", { name: "Rows of the ablation table" });
      await box.waitFor();
      const drawn = () => page.locator("table.ablation tbody tr").count();
      assert.ok((await drawn()) < 120, `${await drawn()} rows are drawn`);
      await settles(async () =>
        assert.equal(await page.locator("table.ablation").getAttribute("aria-rowcount"), "5007"),
      );
      await settles(async () => assert.equal(await page.locator("tr.unread").count(), 0));
      await keep(page, "table-long");
      for (const place of [0.5, 1, 0.13]) {
        await box.evaluate((element, share) => (element.scrollTop = share * element.scrollHeight), place);
        await settles(async () => {
          const ids = await rowIds(page);
          const middle = Number(ids[Math.floor(ids.length / 2)]?.slice(1));
          assert.ok(Math.abs(middle / 5000 - place) < 0.02, `row ${middle} at ${place}`);
          assert.equal(await page.locator("tr.unread").count(), 0);
        });
        assert.ok((await drawn()) < 120);
      }
      assert.equal(
        await page.evaluate(() => {
          const lines = [...document.querySelectorAll("table.ablation tbody tr:not(.gap)")];
          return new Set(lines.map((line) => Math.round(line.getBoundingClientRect().height))).size;
        }),
        1,
        "lines have one height: nothing jumps",
      );
    }));

  test("of 5,000 rows all are sorted, found and printed", () =>
    on(
      "/sweeps/thousands?sort=-params",
      async (page) => {
        const { rows } = await served("/sweeps/thousands/table?first=0&count=1000");
        assert.equal(rows.length, 1000);
        const most = Array.from({ length: 5000 }, (_, i) => [(i * 7919) % 5000, i]).sort((a, b) => b[0] - a[0]);
        await settles(async () =>
          assert.deepEqual(
            (await rowIds(page)).slice(0, 5),
            most.slice(0, 5).map(([, i]) => `r${String(i).padStart(4, "0")}`),
          ),
        );
        await page.getByRole("searchbox", { name: "Find rows", exact: true }).fill("variant 4321");
        await settles(async () => assert.deepEqual(await rowIds(page), ["r4321"]));
        await page.getByText(/^1 of 5.000 rows$/).waitFor();
        if (kAblate)
          assert.equal(
            await copied(page, "CSV"),
            printed("thousands", "--format", "csv", "--sort", "-params", "--find", "variant 4321"),
          );
        await page.getByRole("link", { name: /^r4321/ }).click();
        await page.waitForURL(/row=r4321/);
        assert.equal(new URL(page.url()).searchParams.get("first"), "4200", "its trials are of that part");
        await page.locator("table.trials tbody tr").filter({ hasText: "r4321" }).waitFor();
        await page.getByRole("link", { name: "Show all rows, not only r4321" }).first().click();
        const trials = page.locator("table.trials");
        await settles(async () => assert.ok(Number(await trials.getAttribute("aria-rowcount")) > 200));
        assert.ok((await trials.locator("tbody tr").count()) < 80, "those in sight are drawn");
        const last = trials.locator("tbody tr:not(.gap)").last();
        await trials.evaluate((table) => table.parentElement.scrollTo(0, 1e9));
        await settles(async () =>
          assert.equal(await last.getAttribute("aria-rowindex"), await trials.getAttribute("aria-rowcount")),
        );
        await page.getByRole("link", { name: "1 queued of r4321" }).click();
        await page.waitForURL(/row=r4321&.*state=queued.*#trials$/);
        await page.locator("table.trials tbody tr").filter({ hasText: "r4321" }).waitFor();
      },
      clipboard,
    ));

  test("an address leads to a row wherever it stands, and groups fold", () =>
    on("/sweeps/thousands?row=r3333&first=3200", async (page) => {
      await page.locator("table.ablation tr.selected", { hasText: "r3333" }).waitFor();
      await settles(async () =>
        assert.equal(
          await page.locator("table.ablation tr.selected").evaluate((row) => {
            const box = row.closest(".lines").getBoundingClientRect();
            const at = row.getBoundingClientRect();
            return at.top > box.top && at.bottom < box.bottom;
          }),
          true,
          "it is in sight",
        ),
      );
      await settles(async () =>
        assert.equal(await page.locator("table.ablation").getAttribute("aria-rowcount"), "5007"),
      );
      await page.getByRole("button", { name: "Fold groups" }).click();
      await settles(async () => assert.equal(await page.locator("tr.row-group").count(), 5));
      assert.deepEqual(await rowIds(page), []);
      await page.getByRole("button", { name: /Group 4/ }).click();
      await page.locator("table.ablation tbody", { hasText: "r4000" }).waitFor();
      await page.goBack();
      await settles(async () => assert.deepEqual(await rowIds(page), []));
    }));

  test("the keys lead from row to row of a long table", () =>
    on("/sweeps/thousands", async (page) => {
      const here = () => page.evaluate(() => document.activeElement?.closest("tr")?.getAttribute("aria-rowindex"));
      await settles(async () => {
        await page.keyboard.press("j"); // before there are rows it leads nowhere
        assert.ok(await here());
      });
      for (let i = 1; i < 60; ++i) await page.keyboard.press("j");
      await settles(async () => assert.equal(await here(), "62"));
      const isInSight = await page.evaluate(() => {
        const at = document.activeElement.getBoundingClientRect();
        const head = document.querySelector("table.ablation thead").getBoundingClientRect();
        return at.top >= head.bottom - 1 && at.bottom <= innerHeight;
      });
      assert.ok(isInSight, "and it is not hidden by the head");
    }));
});
