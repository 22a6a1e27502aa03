// SPDX-License-Identifier: Apache-2.0
// The dashboard as people use it, in a real browser.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import {
  missing,
  openPage,
  settles,
  startBrowser,
  startDashboard,
  useDashboard,
} from "./fixture.mjs";

describe("the dashboard", { skip: missing() }, () => {
  const dashboard = useDashboard();
  const { on, served } = dashboard;

  const runningRun = async () =>
    `/runs/${(await served("/workers")).workers[0].runs[0]}`;
  const rowIds = (page) =>
    page.locator("table.ablation tbody .row-id").allTextContents();

  test("lists the sweeps and leads to one", () =>
    on("/sweeps", async (page) => {
      await page.getByRole("link", { name: "msf-sharing" }).click();
      await page
        .getByRole("heading", { level: 1, name: "msf-sharing" })
        .waitFor();
      assert.equal(new URL(page.url()).pathname, "/sweeps/msf-sharing");
      await page.goBack();
      await page.getByRole("heading", { level: 1, name: "Sweeps" }).waitFor();
    }));

  test("shows a sweep's table: mean ± s.d., n, difference, the paper's value", () =>
    on("/sweeps/msf-sharing", async (page) => {
      const row = page
        .locator("table.ablation tbody tr")
        .filter({ hasText: "MSF, Simplest" });
      await row.waitFor();
      const cells = await row.locator("td").allTextContents();
      const cell = (await served("/sweeps/msf-sharing/table")).rows[1].cells[0];
      assert.match(cells[0], /^\d+\.\d\d ± \d+\.\d\d$/);
      assert.equal(cells[0], cell.text, "the digits are the server's");
      assert.equal(cells[1], "2");
      assert.match(cells[2], /^−\d+\.\d\d/);
      assert.equal(cells[3], "61.13");
      await page
        .getByRole("columnheader", { name: "paper: ImageNet, 100 epochs" })
        .first()
        .waitFor();
      assert.equal(
        await page
          .locator("tr.baseline th")
          .innerText()
          .then((t) => t.includes("baseline")),
        true,
      );
      await settles(async () =>
        assert.equal(
          await page
            .getByRole("img", {
              name: /Line chart of val\/top1 over 600 optimiser steps/,
            })
            .count(),
          1,
        ),
      );
    }));

  test("sorts by keyboard, and the address keeps the order", () =>
    on("/sweeps/msf-sharing", async (page) => {
      await page.locator("table.ablation tbody tr").first().waitFor();
      const rowsBegin = (...ids) =>
        settles(async () =>
          assert.deepEqual((await rowIds(page)).slice(0, ids.length), ids),
        );
      const rowsEndWithA = () =>
        settles(async () => assert.equal((await rowIds(page)).at(-1), "a"));
      await rowsBegin("orig", "a");
      const link = page.locator("table.ablation thead a", { hasText: "here" });
      await link.focus();
      await page.keyboard.press("Enter");
      await page.waitForURL(/sort=params/);
      await rowsBegin("a");
      await link.focus();
      await page.keyboard.press("Enter");
      await page.waitForURL(/sort=-params/);
      await rowsEndWithA();
      await page.reload();
      await page.locator("table.ablation th[aria-sort=descending]").waitFor();
      await rowsEndWithA();
    }));

  test("follows what is published without a reload", () =>
    on("/sweeps/msf-sharing", async (page) => {
      const completed = page.locator(".summary", {
        hasText: "10 of 14 trials completed",
      });
      await completed.waitFor();
      await page.evaluate(() => (window.stillTheSamePage = true));
      await dashboard.tell("advance 170");
      await page
        .locator(".summary", { hasText: "11 of 14 trials completed" })
        .waitFor();
      const row = page
        .locator("table.ablation tbody tr")
        .filter({ hasText: "QKKKQ" });
      await row
        .locator("td", { hasText: /^\d+\.\d\d ± \d+\.\d\d$/ })
        .first()
        .waitFor();
      assert.equal(await page.evaluate(() => window.stillTheSamePage), true);
    }));

  test("a row leads to its runs, a run shows its curves, configuration and log", () =>
    on("/sweeps/msf-sharing", async (page) => {
      const row = page
        .locator("table.ablation tbody tr")
        .filter({ hasText: "QKKKQ" });
      await row.locator("a.value").first().click();
      await page.waitForURL(/row=f/);
      const trials = page.locator("table.trials tbody tr");
      await settles(async () => assert.equal(await trials.count(), 2));
      await trials
        .last()
        .getByRole("link", { name: /^run \d+/ })
        .click();
      await page.getByRole("heading", { level: 1, name: /^Run \d+/ }).waitFor();
      await page.getByRole("img", { name: /Line chart of top1/ }).waitFor();
      await page
        .getByRole("region", { name: "Configuration" })
        .getByText('"QKKKQ"')
        .waitFor();
      await page.getByRole("log").getByText("resumed at step 300").waitFor();
      await settles(async () =>
        assert.equal(
          await page
            .getByText("worker cellar-3 was not heard for 30 s")
            .count(),
          1,
          "the lost attempt is told",
        ),
      );
    }));

  test("a log that is followed grows with its run", async () =>
    on(await runningRun(), async (page) => {
      const log = page.getByRole("log");
      await log.getByText("data: 4000 images").waitFor();
      const before = (await log.innerText()).length;
      await dashboard.tell("advance 60");
      await page.waitForFunction(
        (length) =>
          document.querySelector("[role=log]").innerText.length > length,
        before,
      );
      await settles(async () =>
        assert.equal(
          await log.evaluate(
            (e) => e.scrollHeight - e.scrollTop - e.clientHeight < 4,
          ),
          true,
        ),
      );
    }));

  test("a chart can be read as a table", () =>
    on("/sweeps/msf-sharing?metric=loss", async (page) => {
      await page.locator("section[aria-labelledby=curves]").getByRole("button", { name: "Show as table" }).first().click();
      const table = page.getByRole("region", { name: "val/loss as a table" });
      await table.locator("tbody tr").nth(11).waitFor();
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
      await settles(async () =>
        assert.equal(await button.getAttribute("aria-pressed"), "false"),
      );
      await page.getByRole("img", { name: /val\/top1 .* 6 lines/ }).waitFor();
    }));

  test("a seed that diverged is marked and ends the mean", async () => {
    await dashboard.tell("diverge nan");
    await on("/sweeps/nan?metric=loss", async (page) => {
      await page
        .getByText(
          "✕ orig Transformer: seed 2 is NaN from step 300 on; the mean ends there",
        )
        .waitFor();
      await page
        .getByText(
          "✕ a MSF, Simplest: seed 1 is NaN from step 200 on, finite again by step 300; the mean has a gap there",
        )
        .waitFor();
      const key = page.getByRole("group", { name: "Rows shown in the charts" });
      await key.getByText("n 3, ✕ 1 diverged").first().waitFor();
      await page
        .getByRole("img", {
          name: /val\/loss .* \(mean of 3\), seed 2 is NaN from step 300 on/,
        })
        .waitFor();
      await page.locator("section[aria-labelledby=curves]").getByRole("button", { name: "Show as table" }).first().click();
      const table = page.getByRole("region", { name: "val/loss as a table" });
      const at = async (step) =>
        table
          .locator("tbody tr", {
            has: page.getByRole("rowheader", { name: step, exact: true }),
          })
          .locator("td");
      assert.match(
        await (await at("290")).first().innerText(),
        /^\d\.\d{4} ± 0\.0100, n 3$/,
      );
      assert.equal(
        await (await at("310")).first().innerText(),
        "NaN in seed 2",
      );
      assert.match(await (await at("310")).last().innerText(), /, n 3$/);
    });
    const { runs } = await served("/runs?sweep=nan");
    const gap = runs.find(
      (run) => run.rows[0].row === "a" && run.rows[0].seed === "1",
    );
    await on(`/runs/${gap.id}`, async (page) => {
      await page.getByText("60, 10 not finite").waitFor();
      await page
        .getByText(
          "✕ val/loss is NaN from step 200 on, finite again by step 300",
        )
        .waitFor();
    });
  });

  test("a difference has a colour, and a best is bold, only where the seeds' spread does not explain it", async () => {
    const table = await served("/sweeps/msf-sharing/table");
    await on("/sweeps/msf-sharing", async (page) => {
      for (const [i, row] of table.rows.entries()) {
        const line = page.locator("table.ablation tbody tr").nth(i);
        await line.waitFor();
        for (const [column, cell] of row.cells.slice(0, 2).entries()) {
          const bold = (
            await line.locator("td.group").nth(column).getAttribute("class")
          ).includes("best");
          assert.equal(bold, cell.comparison?.best ?? false);
          const delta = line
            .locator("td:not(.group) span[title*='the baseline']")
            .nth(column);
          if (
            !cell.comparison ||
            cell.comparison.verdict === "VERDICT_UNSPECIFIED"
          )
            continue;
          const look =
            { VERDICT_BETTER: "good", VERDICT_WORSE: "bad" }[
              cell.comparison.verdict
            ] ?? "muted";
          assert.equal(await delta.getAttribute("class"), look);
          assert.ok(
            (await delta.getAttribute("title")).includes(cell.comparison.why),
          );
        }
      }
    });
    const verdicts = table.rows.map((row) => row.cells[0].comparison?.verdict);
    assert.ok(
      verdicts.includes("VERDICT_WORSE") &&
        verdicts.includes("VERDICT_NOT_TOLD_APART"),
      String(verdicts),
    );
  });

  test("what a completed run lacks is said wherever its sweep is", async () => {
    await dashboard.tell("incomplete lacking");
    await on("/sweeps", async (page) => {
      const line = page.getByRole("row").filter({ hasText: "lacking" });
      await line.getByText("incomplete").waitFor();
      await line.getByText("2/3, 1 missing").waitFor();
      await line
        .getByRole("img", {
          name: "2 of 3 trials completed, 1 completed without a metric of the table",
        })
        .waitFor();
    });
    await on("/sweeps/lacking", async (page) => {
      const cells = page.locator("table.ablation tbody tr").first();
      const lack = cells.locator(".cell-missing").first();
      await lack.waitFor();
      assert.ok(
        (await lack.getAttribute("title")).startsWith(
          "reported no val/top1; it reported val/loss",
        ),
      );
      const trial = page.locator("table.trials tbody tr").nth(2);
      await trial
        .getByText("missing: it did not report a metric of the table")
        .waitFor();
      await trial
        .getByText("3 metric reports refused, such as {val/top1: 72}")
        .waitFor();
    });
  });

  test("long labels and headings leave the values in sight, under their head and beside their row", async () => {
    await dashboard.tell("lengthen groups");
    for (const viewport of [
      { width: 1360, height: 900 },
      { width: 390, height: 800 },
    ])
      await on(
        "/sweeps/groups",
        async (page) => {
          const value = page.locator("table.ablation a.value").first();
          await value.waitFor();
          const box = await value.boundingBox();
          assert.ok(
            box.x + box.width <= viewport.width,
            `the value is seen: ${JSON.stringify(box)}`,
          );
          const page_width = await page.evaluate(
            () => document.documentElement.scrollWidth,
          );
          assert.ok(
            page_width <= viewport.width,
            `the page is as wide as the window: ${page_width}`,
          );
          const name = page.locator("table.ablation tbody th").first();
          const before = (await name.boundingBox()).x;
          await page
            .locator(".scroll.tall")
            .first()
            .evaluate((e) => (e.scrollLeft = 200));
          await settles(async () =>
            assert.equal(
              (await name.boundingBox()).x,
              before,
              "the row's name stays",
            ),
          );
        },
        { viewport },
      );
  });

  test("a log is read as a terminal would leave it, searched and downloaded", async () => {
    const path = await runningRun();
    const run = path.split("/").at(-1);
    await on(path, async (page) => {
      const log = page.getByRole("log");
      await log.getByText("data: 4000 images").waitFor();
      await dashboard.tell(`print ${run}`);
      await log.locator(".ansi-bold.ansi-red", { hasText: "red" }).waitFor();
      const text = await log.innerText();
      assert.ok(
        text.includes("red alert") &&
          text.includes("all of it") &&
          !text.includes("60%") &&
          !text.includes("\u001b"),
        text,
      );
      await page.getByRole("searchbox", { name: "Find" }).fill("RED aLert");
      await page.getByText("1 of 1").waitFor();
      assert.equal(
        (await log.locator("mark[aria-current]").allTextContents()).join(""),
        "red alert",
      );
      assert.equal(
        new URL(page.url()).searchParams.get("find"),
        "RED aLert",
        "the address keeps it",
      );
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: /^Download/ }).click(),
      ]);
      assert.equal(download.suggestedFilename(), `run-${run}.log`);
      assert.equal(
        readFileSync(await download.path(), "utf8"),
        await (
          await fetch(new URL(`/api/v1/runs/${run}/log`, dashboard.url))
        ).text(),
      );
    });
  });

  test("a long log is read from any byte on, in parts that end where the next begins", async () => {
    const path = (await runningRun()).replace(/\?.*/, "");
    await dashboard.tell(`chatter ${path.split("/").at(-1)}`);
    await on(`${path}?log=0`, async (page) => {
      const log = page.getByRole("log");
      const lines = async () => (await log.innerText()).trim().split("\n");
      await log.getByText("data: 4000 images").waitFor();
      const later = page.getByRole("link", { name: "Later" });
      await settles(async () =>
        assert.ok((await log.innerText()).length > 500_000),
      );
      const cut = (await lines()).at(-1);
      await later.click();
      const number = (line) => Number(line.slice(0, 6));
      await settles(async () => assert.ok(number((await lines())[0]) > 10_000));
      assert.equal(
        number((await lines())[0]),
        number(cut) + 1,
        "no line is missing, and none is there twice",
      );
      await page.getByRole("link", { name: "End", exact: true }).click();
      await settles(async () =>
        assert.match((await lines()).at(-1), /^039999 /),
      );
      await page.getByRole("link", { name: "Earlier" }).click();
      await page.waitForURL(/log=\d+/);
    });
  });

  test("an address that there is not shows the app's page, with status 404", async () => {
    const { page } = await openPage(dashboard.browser);
    const answer = await page.goto(
      dashboard.at("/nothing/at/all").href,
    );
    assert.equal(answer.status(), 404);
    await page
      .getByRole("heading", { level: 1, name: "No such page" })
      .waitFor();
    await page.goto(dashboard.at("/sweep/msf-sharing").href);
    await page
      .getByText("Did you mean")
      .getByRole("link", { name: "/sweeps/msf-sharing" })
      .click();
    await page
      .getByRole("heading", { level: 1, name: "msf-sharing" })
      .waitFor();
    await page.context().close();
  });

  test("keys lead about, and can be switched off", () =>
    on("/sweeps", async (page) => {
      const heading = (name) =>
        page.getByRole("heading", { level: 1, name }).waitFor();
      await page.getByRole("link", { name: "msf-sharing" }).waitFor();
      await page.keyboard.press("g");
      await page.keyboard.press("w");
      await heading("Workers");
      await page.keyboard.press("g");
      await page.keyboard.press("s");
      await heading("Sweeps");
      await page.getByRole("link", { name: "msf-sharing" }).waitFor();
      const focused = () =>
        page.evaluate(() => document.activeElement.innerText);
      await page.keyboard.press("j");
      const first = await focused();
      await page.keyboard.press("j");
      assert.notEqual(await focused(), first);
      await page.keyboard.press("k");
      assert.equal(await focused(), first);
      await page.keyboard.press("Enter");
      await heading(first);
      await page.keyboard.press("?");
      const dialog = page.getByRole("dialog", { name: "Keyboard shortcuts" });
      await dialog.waitFor();
      await dialog.getByRole("checkbox").uncheck();
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "hidden" });
      await page.keyboard.press("?");
      await page.keyboard.press("g");
      await page.keyboard.press("w");
      assert.equal(await dialog.isVisible(), false);
      await heading(first);
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

  const streams = async () => {
    const text = await (await fetch(new URL("/metrics", dashboard.url))).text();
    return Number(/^ablate_http_event_streams (\d+)$/m.exec(text)[1]);
  };
  const aMoment = () => new Promise((over) => setTimeout(over, 1500));

  test("eight tabs have one event stream, and all of them follow it", async () => {
    await settles(async () => assert.equal(await streams(), 0));
    const { page, problems } = await openPage(dashboard.browser);
    const pages = [page];
    while (pages.length < 8) pages.push(await page.context().newPage());
    for (const tab of pages) {
      await tab.goto(dashboard.at("/sweeps").href);
      await tab.getByText("Live", { exact: true }).waitFor();
    }
    assert.equal(await streams(), 1);
    await dashboard.tell("submit eight");
    for (const tab of pages)
      await tab.getByRole("link", { name: "eight", exact: true }).waitFor();
    await pages.shift().close(); // the one that opened the stream
    await dashboard.tell("submit seven");
    for (const tab of pages)
      await tab.getByRole("link", { name: "seven", exact: true }).waitFor();
    assert.equal(await streams(), 1);
    assert.deepEqual(problems, []);
    await page.context().close();
    await settles(async () => assert.equal(await streams(), 0));
  });

  test("without shared workers a tab has a stream of its own", async () => {
    const { page, problems } = await openPage(dashboard.browser);
    await page.addInitScript(() => delete window.SharedWorker);
    await page.goto(dashboard.at("/sweeps").href);
    await page.getByText("Live", { exact: true }).waitFor();
    await dashboard.tell("submit alone");
    await page.getByRole("link", { name: "alone", exact: true }).waitFor();
    assert.deepEqual(problems, []);
    await page.context().close();
  });

  test("nothing is read twice at load, and nothing while nothing changes", async () => {
    const paths = ["/", "/sweeps", "/sweeps/msf-sharing", await runningRun(), "/tables", "/queue", "/workers"];
    const look = async (path) => {
      const { page, asked } = await openPage(dashboard.browser);
      const reads = () =>
        asked
          .map(({ pathname, search }) => pathname + search)
          .filter((read) => !/^\/api\/v1\/(events|whoami)/.test(read));
      await page.goto(dashboard.at(path).href);
      // it reads at once, for it has been told where the events stand
      assert.match(await page.locator("meta[name=ablate-place]").getAttribute("content"), /^[0-9a-f]{8}-\d+$/);
      await page.getByText("Live", { exact: true }).waitFor();
      await settles(async () => assert.notEqual(reads().length, 0));
      await page.waitForFunction(() => !document.querySelector(".skeleton"));
      await aMoment();
      const before = reads();
      assert.equal(new Set(before).size, before.length, before.join("\n"));
      await aMoment();
      assert.deepEqual(reads(), before);
      await page.context().close();
    };
    for (const path of paths) await look(path); // one by one: a page that is slow to connect reads again when it is
  });

  test("what is not there is said in the server's words", async () => {
    const { page } = await openPage(dashboard.browser);
    await page.goto(dashboard.at("/sweeps/msf-sharin").href);
    await page.getByRole("alert").getByText("msf-sharing").first().waitFor();
    await page.context().close();
  });
});

describe("a dashboard whose server is frozen", { skip: missing() }, () => {
  test("is not called live: nothing closes the connection, and nothing comes", async () => {
    const dashboard = await startDashboard();
    const browser = await startBrowser();
    const { page, asked } = await openPage(browser);
    await page.goto(new URL("/sweeps", dashboard.url).href);
    await page.getByText("Live", { exact: true }).waitFor();
    dashboard.freeze();
    await page.getByText(/No connection to the server since/).waitFor();
    await settles(async () =>
      assert.equal(await page.getByText("Live", { exact: true }).count(), 0),
    );
    asked.length = 0;
    dashboard.thaw();
    await page.getByText("Live", { exact: true }).waitFor();
    await settles(async () =>
      assert.equal(
        await page.getByText(/No connection to the server since/).count(),
        0,
      ),
    );
    await new Promise((over) => setTimeout(over, 1500));
    assert.ok(
      !asked.some(({ pathname }) => pathname === "/api/v1/sweeps"),
      "nothing changed: nothing is read again",
    );
    await dashboard.tell("submit afterwards");
    await page.getByRole("link", { name: "afterwards" }).waitFor();
    await browser.close();
    await dashboard.stop();
  });
});

describe("a dashboard beside a writer", { skip: missing() }, () => {
  test("sees commits that nobody publishes, and says when its server is gone", async () => {
    const dashboard = await startDashboard("0", "--watch");
    const browser = await startBrowser();
    const { page } = await openPage(browser);
    await page.goto(new URL("/sweeps", dashboard.url).href);
    await page.getByRole("link", { name: "msf-sharing" }).waitFor();
    await dashboard.tell("submit later");
    await page.getByRole("link", { name: "later" }).waitFor();
    await page.route("**/api/v1/sweeps?*", (route) => route.abort());
    await dashboard.tell("submit unread");
    await page.getByText("Sweeps could not be read").waitFor();
    await dashboard.stop();
    await page.getByText(/No connection to the server since/).waitFor();
    await page.locator(".banner").getByText("ablate up").waitFor();
    assert.equal(await page.locator(".notice-error").count(), 0, "the bar says it, above what was known");
    assert.equal(
      await page.getByRole("link", { name: "msf-sharing" }).count(),
      1,
      "what was known stays",
    );
    await browser.close();
  });
});
