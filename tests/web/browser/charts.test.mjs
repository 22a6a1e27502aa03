// SPDX-License-Identifier: Apache-2.0
// Charts of a sweep's table: what they show, what they say where there is nothing to show, and that what is brushed is what the table keeps.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { violationsOf } from "./axe.mjs";
import { missing, settles, useDashboard, visit } from "./fixture.mjs";
import { factorTable, serveTable } from "./made_up.mjs";

const kScreenshots = process.env.SCREENSHOTS;

describe("charts", { skip: missing() }, () => {
  const dashboard = useDashboard({
    ready: ({ tell }) => tell("hostile odd"),
    shown: "table.ablation tbody tr",
  });
  const { on, at } = dashboard;
  const table = factorTable("msf-sharing");
  /** The page of a sweep of factors. */
  const onFactors = (query, steps, { of = table, ...options } = {}) =>
    visit(
      dashboard.browser,
      at("/workers"),
      async (page, asked) => {
        await serveTable(page, "msf-sharing", of);
        await page.goto(at(`/sweeps/msf-sharing?${query}`).href);
        await charts(page).locator("figure, .notice").first().waitFor();
        await steps(page, asked);
      },
      options,
    );
  const charts = (page) => page.locator("section[aria-labelledby=charts]");
  const rowCount = (page) => page.locator("table.ablation tbody tr:not(.gap)").count();
  const chip = (page) => page.locator("#table-heading .brush-chip");
  const params = (page) => new URL(page.url()).searchParams;
  const keep = async (page, name) =>
    kScreenshots && charts(page).screenshot({ path: `${kScreenshots}/charts-${name}.png`, animations: "disabled" });
  const drag = async (page, from, to) => {
    await page.mouse.move(...from);
    await page.mouse.down();
    await page.mouse.move(...to, { steps: 6 });
    await page.mouse.up();
  };

  test("bars: a row each in the table's order, with interval, baseline and the paper's number; a press chooses a row", () =>
    on("/sweeps/msf-sharing?sort=-acc", async (page) => {
      const bars = charts(page).locator("table.bars tbody tr");
      await bars.first().waitFor();
      const ids = await page.locator("table.ablation tbody .row-id").allTextContents();
      assert.equal(await bars.count(), ids.length);
      const labels = await bars.locator("th").allInnerTexts();
      const ofTable = await page.locator("table.ablation tbody .name:not(.row-id)").allInnerTexts();
      assert.deepEqual(labels, ofTable);
      await charts(page).getByText("◆ paper: ImageNet, 100 epochs.").waitFor();
      assert.ok((await charts(page).locator("path.bars-paper").count()) >= 5);
      await charts(page).getByText("Bars begin at the baseline").waitFor();
      await bars.first().hover();
      await settles(async () => assert.equal(await page.locator("table.ablation tr.lit").count(), 1));
      await bars.nth(1).getByRole("button").click();
      await page.locator("table.ablation tr.chosen", { hasText: "chosen in Charts" }).waitFor();
      assert.equal(params(page).get("chosen"), ids[1]);
      await charts(page).getByRole("link", { name: "keep only it" }).click();
      await settles(async () => assert.equal(await rowCount(page), 1));
      assert.match(await chip(page).innerText(), /^1 of 7 rows: brushed in Charts/);
      await page.reload();
      await settles(async () => assert.equal(await rowCount(page), 1));
      await chip(page).getByRole("link").click();
      await settles(async () => assert.equal(await rowCount(page), 7));
      await charts(page).getByRole("checkbox", { name: "From 0" }).check();
      await charts(page).getByText("Bars begin at 0.").waitFor();
      await charts(page).getByRole("button", { name: "Show as table" }).click();
      await charts(page).getByRole("region", { name: /as a table/ }).waitFor();
      assert.equal(params(page).get("chart-as"), "table");
    }));

  test("scatter: a drag keeps the rows in a rectangle, the keys go from point to point", () =>
    onFactors("chart=scatter&chart-x=params", async (page) => {
      const plot = page.getByRole("img", { name: /Scatter of top-1 \(%\) against params \(M\), 34 points/ });
      await plot.scrollIntoViewIfNeeded();
      await charts(page).getByText("2 of 36 rows without both values.").waitFor();
      await keep(page, "scatter");
      const box = await plot.boundingBox();
      await drag(page, [box.x + box.width * 0.55, box.y + 12], [box.x + box.width - 4, box.y + box.height - 30]);
      await page.waitForURL(/brush=/);
      const inside = table.rows.filter(({ cells }) => {
        const [from, to] = params(page).getAll("brush")[0].split("~").slice(2).map(Number);
        const [low, high] = params(page).getAll("brush")[1].split("~").slice(2).map(Number);
        const [x, y] = [cells[2].mean / 1e6, cells[0].mean];
        return typeof y === "number" && x >= from && x <= to && y >= low && y <= high;
      }).length;
      assert.ok(inside > 5 && inside < 30, `${inside} rows`);
      await settles(async () => assert.equal(await rowCount(page), inside));
      assert.match(await chip(page).innerText(), new RegExp(`^${inside} of 36 rows: brushed in Charts`));
      await page.goBack();
      await settles(async () => assert.equal(await rowCount(page), 36));
      await plot.focus();
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("ArrowRight");
      await settles(async () => assert.equal(await page.locator("table.ablation tr.lit").count(), 1));
      await page.keyboard.press("Enter");
      await page.locator("table.ablation tr.chosen").waitFor();
      assert.equal(params(page).get("chosen").split(" ").length, 1);
      await charts(page).getByRole("checkbox", { name: "log x" }).check();
      await page.waitForURL(/chart-log=x/);
    }));

  test("a heat map averages over other settings, and says over how many rows, or leaves them to be brushed", () =>
    onFactors("chart=heat&chart-across=factor.depth&chart-down=factor.lr", async (page) => {
      const heat = charts(page).locator("table.heat");
      await charts(page).getByText("Each cell is the mean of 3 to 4 rows, averaged over kernel, share.").waitFor();
      await charts(page).getByRole("checkbox", { name: "Average over other settings" }).uncheck();
      await charts(page).getByText("Some cells have several rows.").waitFor();
      assert.equal(await heat.getByRole("button", { name: /4 rows$/ }).count(), 8);
      await charts(page).getByRole("link", { name: "Average over the other settings" }).click();
      await charts(page).getByText("Each cell is the mean of 3 to 4 rows, averaged over kernel, share.").waitFor();
      const cell = heat.getByRole("button", { name: /^depth 8, lr 0\.001: / });
      const own = table.rows.filter(({ id }) => id.includes("depth=8,lr=0.001,"));
      const mean = own.reduce((sum, { cells }) => sum + cells[0].mean, 0) / own.length;
      assert.equal(
        await cell.getAttribute("aria-label"),
        `depth 8, lr 0.001: ${mean.toFixed(2)} n 4, mean of 4 rows`,
      );
      await heat.getByText("1 diverged").waitFor();
      await charts(page).getByText("Hatched: 1 with a row that diverged or is NaN.").waitFor();
      await keep(page, "heat");
      await cell.hover();
      await settles(async () => assert.equal(await page.locator("table.ablation tr.lit").count(), 4));
      await cell.click();
      await settles(async () => assert.equal(await rowCount(page), 4));
      assert.equal(await cell.getAttribute("aria-pressed"), "true");
      await cell.click();
      await settles(async () => assert.equal(await rowCount(page), 36));
    }));

  test("parallel axes: a drag on an axis filters, and so do the keys at its ends", () =>
    onFactors("chart=parallel", async (page) => {
      const strips = charts(page).locator(".parallel-strip");
      await strips.first().waitFor();
      await strips.first().scrollIntoViewIfNeeded();
      const titles = await charts(page).locator(".parallel-title").allInnerTexts();
      const place = titles.indexOf("top-1 (%)");
      const box = await strips.nth(place).boundingBox();
      await drag(page, [box.x + 14, box.y + 20], [box.x + 14, box.y + box.height / 2]);
      await page.waitForURL(/brush=range/);
      const [, , from, to] = params(page).get("brush").split("~");
      const inside = table.rows.filter(({ cells }) => cells[0].mean >= from && cells[0].mean <= to).length;
      assert.ok(inside > 3 && inside < 30, `${inside} rows`);
      await settles(async () => assert.equal(await rowCount(page), inside));
      await keep(page, "parallel");
      const upper = page.getByRole("slider", { name: /^lr, upper end/ });
      await upper.focus();
      await page.keyboard.press("ArrowDown");
      await page.waitForURL(/in%7Efactor\.lr%7E0\.0003%7E0\.001|in~factor\.lr~0\.0003~0\.001/);
      assert.equal(await upper.getAttribute("aria-valuetext"), "0.001");
      assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("role")), "slider");
      await page.keyboard.press("Escape");
      await settles(async () => assert.equal(await rowCount(page), inside));
      await strips.nth(place).click({ position: { x: 14, y: 240 } });
      await settles(async () => assert.equal(await rowCount(page), 36));
      await charts(page).locator("summary", { hasText: "Axes" }).click();
      await page.getByRole("checkbox", { name: "loss" }).uncheck();
      await settles(async () => assert.equal(await strips.count(), titles.length - 1));
    }));

  test("main effects: means with intervals and n, shares of the variance, and what to think of them", () =>
    onFactors("chart=effects", async (page) => {
      // averaged over the combinations that both kernels have a value for
      const rows = new Map(table.rows.map((row) => [row.id, row]));
      const has = (id) => typeof rows.get(id).cells[0].mean === "number";
      const own = table.rows.filter(
        ({ id }) => id.startsWith("kernel=gaussian") && has(id) && has(id.replace("gaussian", "dot")),
      );
      assert.equal(own.length, 16);
      const mean = own.reduce((sum, { cells }) => sum + cells[0].mean, 0) / own.length;
      const level = charts(page).locator("tr", { hasText: "gaussian" });
      assert.match(await level.innerText(), new RegExp(`${mean.toFixed(2)}, \\d+\\.\\d+ to \\d+\\.\\d+\\s+16/18`));
      await charts(page).getByText("over the 16 combinations of the other settings that every level has, of 18").first().waitFor();
      await charts(page).getByText("over other seeds (t, 68 degrees of freedom;").waitFor();
      await charts(page).getByText("1 row of these diverged or gave NaN").waitFor();
      await charts(page).getByText("balanced but for the rows without a value").waitFor();
      await charts(page).getByText("η² = Σ").waitFor();
      const shares = await charts(page).getByRole("region", { name: "Importance of the settings" }).locator("tbody tr").allInnerTexts();
      assert.equal(shares.length, 4);
      await keep(page, "effects");
      await level.getByRole("button").click();
      await settles(async () => assert.equal(await rowCount(page), 18));
    }));

  test("where there is nothing to draw it is said why", () =>
    onFactors(
      "chart=effects",
      async (page) => {
        const said = charts(page);
        await said.getByText("No row has a value of top-1 (%); 36 diverged or gave NaN.").waitFor();
        await said.getByRole("link", { name: "Bars" }).click();
        await said.getByText("36 of 36 rows diverged or gave NaN").waitFor();
        await said.getByRole("link", { name: "Scatter" }).click();
        await said.getByText("No row has a value of top-1 (%).").waitFor();
        await page.goto(at("/sweeps/groups?chart=heat").href);
        await said.getByText("A heat map needs two settings in which rows differ").waitFor();
      },
      {
        of: {
          ...table,
          rows: table.rows.map((row) => ({
            ...row,
            cells: row.cells.map((cell, place) =>
              place < 2 ? { ...cell, mean: "NaN", sd: undefined, text: "nan", paper: "", statistics: undefined } : cell,
            ),
          })),
        },
      },
    ));

  test("a setting whose levels have one row each has no share", () =>
    on("/sweeps/msf-sharing?chart=effects", async (page) => {
      await charts(page).getByText("Importance").waitFor();
      await settles(async () =>
        assert.match(
          await charts(page).innerText(),
          /each level has one row: it would explain all, whatever the values|fewer than three rows have a value/,
        ),
      );
    }));

  test("a pivoted table keeps the lines that have a brushed row", () => {
    const by = "model.depth";
    const long = { ...table, pivot: { by, columns: ["acc"], picked: [] } };
    const [acc] = table.columns;
    const lines = table.rows
      .filter(({ id }) => id.includes("depth=4,"))
      .map((row) => ({
        ...row,
        id: row.id.replace("depth=4,", ""),
        label: row.label.replace("depth=4, ", ""),
        cells: ["4", "8", "12"].map((depth) => {
          const own = table.rows.find(({ id }) => id === row.id.replace("depth=4,", `depth=${depth},`));
          return { ...own.cells[0], row: own.id };
        }),
      }));
    const pivoted = {
      ...long,
      pivoted: true,
      rows: lines,
      columns: ["4", "8", "12"].map((level) => ({ ...acc, name: `acc@${level}`, level, of: "acc" })),
    };
    return onFactors(
      "chart=bars",
      async (page) => {
        await page.unroute(() => true);
        await page.route(
          (url) => url.pathname === "/api/v1/sweeps/msf-sharing/table",
          (route) => route.fulfill({ json: route.request().url().includes("long_form=1") ? long : pivoted }),
        );
        await page.goto(at("/sweeps/msf-sharing?chart=effects").href);
        await settles(async () => assert.equal(await rowCount(page), 12));
        await charts(page).locator("tr", { hasText: "gaussian" }).getByRole("button").click();
        await settles(async () => assert.equal(await rowCount(page), 6));
        assert.match(await chip(page).innerText(), /^18 of 36 rows/);
        await charts(page).getByRole("link", { name: "Bars" }).click();
        await settles(async () => assert.equal(await charts(page).locator("table.bars tbody tr").count(), 18));
        await charts(page).locator("table.bars tbody tr").first().hover();
        await settles(async () => assert.equal(await page.locator("table.ablation tr.lit").count(), 1));
      },
      { of: long },
    );
  });

  test("a part of a long table that cannot be read is told, and nothing is drawn of the others", () =>
    onFactors(
      "",
      async (page) => {
        await page.route(
          (url) => url.pathname === "/api/v1/sweeps/msf-sharing/table" && url.searchParams.get("first") === "400",
          (route) => route.fulfill({ status: 500, json: { code: "INTERNAL", message: "the disk is on fire" } }),
        );
        await charts(page).getByRole("link", { name: "Read all rows and draw them" }).click();
        await charts(page).getByText("A part of the table could not be read").waitFor();
        await charts(page).getByText("the disk is on fire").waitFor();
        await charts(page).getByText("Reading rows: ").waitFor();
        assert.equal(await charts(page).locator("figure").count(), 0);
      },
      { of: factorTable("msf-sharing", 20), expected: /status of 500/ },
    ));

  test("hostile labels are text, in every chart and on a phone", () =>
    on(
      "/sweeps/odd",
      async (page) => {
        for (const kind of ["Bars", "Scatter", "Heat map", "Parallel axes", "Main effects"]) {
          await charts(page).getByRole("link", { name: kind, exact: true }).click();
          await page.waitForURL(/chart=/);
          await charts(page).locator("figure, .notice").first().waitFor();
          assert.equal(await charts(page).locator("img[src]").count(), 0);
          const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          assert.ok(wide <= 0, `${kind} makes the page ${wide} pixels too wide`);
        }
      },
      { viewport: { width: 390, height: 844 } },
    ));

  for (const colorScheme of ["light", "dark"])
    test(`each chart as axe-core judges it, ${colorScheme}, also as a table`, () =>
      onFactors(
        "chart=bars",
        async (page) => {
          for (const kind of ["Bars", "Scatter", "Heat map", "Parallel axes", "Main effects"])
            for (const show of ["Show as chart", "Show as table"]) {
              await charts(page).getByRole("link", { name: kind, exact: true }).click();
              await charts(page).locator("figure").first().waitFor();
              const turn = charts(page).getByRole("button", { name: show }).first();
              if (await turn.isVisible()) await turn.click();
              const found = await violationsOf(page, `${kind}, ${show}`, { part: "section[aria-labelledby=charts]" });
              assert.deepEqual(found, []);
            }
        },
        { colorScheme, reducedMotion: "reduce" },
      ));

  test("nothing is read twice, and brushing reads nothing", () =>
    onFactors("chart=bars", async (page, asked) => {
      await page.getByText("Live", { exact: true }).waitFor();
      const tables = () => asked.filter(({ pathname }) => pathname.endsWith("/msf-sharing/table")).length;
      await settles(async () => assert.equal(tables(), 1));
      for (const kind of ["Scatter", "Heat map", "Parallel axes", "Main effects"])
        await charts(page).getByRole("link", { name: kind, exact: true }).click();
      await charts(page).locator("tr", { hasText: "gaussian" }).getByRole("button").click();
      await settles(async () => assert.equal(await rowCount(page), 18));
      assert.equal(tables(), 1);
    }));

  test("of 10,000 rows each piece is read once, those in sight are drawn, and a brush is quick", async (t) => {
    const large = factorTable("msf-sharing", 278);
    await onFactors(
      "",
      async (page, asked) => {
        await charts(page).getByText("Charts are drawn of all 10\u202f008 rows.").waitFor();
        const pieces = () =>
          asked.filter(({ pathname }) => pathname.endsWith("/msf-sharing/table")).map(({ search }) => search);
        assert.ok(pieces().length < 5, "nothing is read for charts that are not asked for");
        await charts(page).getByRole("link", { name: "Read all rows and draw them" }).click();
        await charts(page).locator("table.bars").waitFor();
        assert.equal(new Set(pieces()).size, pieces().length, "no piece is read twice");
        assert.ok((await charts(page).locator("table.bars tbody tr").count()) < 60);
        await charts(page).getByRole("link", { name: "Parallel axes" }).click();
        const strips = charts(page).locator(".parallel-strip");
        await strips.first().waitFor();
        await strips.first().scrollIntoViewIfNeeded();
        const box = await strips.first().boundingBox();
        await page.evaluate(() => {
          globalThis.longest = 0;
          new PerformanceObserver((list) => {
            for (const { duration } of list.getEntries()) globalThis.longest = Math.max(globalThis.longest, duration);
          }).observe({ type: "longtask" });
        });
        await drag(page, [box.x + 14, box.y + 4], [box.x + 14, box.y + 60]);
        await page.locator("#table-heading .brush-chip").filter({ hasText: "5\u202f004 of 10\u202f008 rows" }).waitFor();
        assert.ok((await rowCount(page)) < 120);
        await page.waitForTimeout(300);
        t.diagnostic(`longest task while brushing 10,008 rows: ${await page.evaluate(() => Math.round(globalThis.longest))} ms`);
      },
      { of: large },
    );
  });
});
