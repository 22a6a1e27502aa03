// SPDX-License-Identifier: Apache-2.0
// Curves as people look at them, in a real browser: every point behind the pixels, and what is seen in the address.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { missing, settles, useDashboard } from "./fixture.mjs";

describe("curves", { skip: missing() }, () => {
  const dashboard = useDashboard({ shown: ".chart canvas" });
  const { on, served } = dashboard;
  const curvesOf = (asked) =>
    asked.filter(({ pathname }) => pathname === "/api/v1/curves").map(({ searchParams }) => searchParams);
  const runningRun = async () => (await served("/workers")).workers[0].runs[0];
  const chart = (page, name) =>
    page
      .locator("figure")
      .filter({ has: page.getByText(name, { exact: true }) });
  /** What the chart's button downloads, as lines of cells. */
  const csvOf = async (page, name) => {
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: `CSV of ${name}`, exact: true }).click(),
    ]);
    const text = readFileSync(await download.path(), "utf8");
    return text
      .trim()
      .split("\r\n")
      .map((line) => line.split(","));
  };

  test("of a long run every extreme is drawn, and a zoom has every point", async () => {
    const run = await runningRun();
    await dashboard.tell(`grow ${run} 100000`);
    await on(`/runs/${run}`, async (page, asked) => {
      const note = chart(page, "long").getByText(
        /the first, lowest, highest and last of every \d+ steps or fewer/,
      );
      await note.waitFor();
      const coarse = await csvOf(page, "long");
      assert.ok(coarse.length < 10_000, `${coarse.length} points for 100,000`);
      assert.ok(
        coarse.some(([, , step, value]) => step === "70000" && value === "-1"),
        "the one low point is there",
      );
      await chart(page, "long").getByText("1 point not finite").waitFor();
      await page.goto(`${page.url()}?zoom=69900~70099`);
      await settles(async () =>
        assert.equal(
          (await csvOf(page, "long")).length,
          201,
          "a head and every point",
        ),
      );
      const fine = await csvOf(page, "long");
      assert.deepEqual(fine[1], ["long", "long", "69900", "69900"]);
      assert.ok(curvesOf(asked).some((query) => query.has("from") && query.has("to")));
    });
  });

  test("what is appended is all that is read while a run grows", async () => {
    const run = await runningRun();
    await on(`/runs/${run}`, async (page, asked) => {
      const points = async () => {
        const text = await chart(page, "long")
          .getByText(/points: the first/)
          .innerText();
        return Number(text.replace(/ points.*/, "").replaceAll("\u202f", ""));
      };
      const before = await points();
      await page.getByText("Live", { exact: true }).waitFor();
      const wholes = curvesOf(asked).filter((query) => !query.has("from")).length;
      await dashboard.tell(`grow ${run} 100`);
      await settles(async () => assert.equal(await points(), before + 100));
      assert.equal(
        curvesOf(asked).filter((query) => !query.has("from")).length,
        wholes,
        "the whole is not read again",
      );
      const last = curvesOf(asked).at(-1);
      assert.ok(last.has("from"));
      const answer = await served(`/curves?${last}`);
      const sent = answer.curves.reduce(
        (sum, { steps }) => sum + steps.length,
        0,
      );
      assert.ok(sent < 1000, `${sent} points for 100 new ones`);
    });
  });

  test("a drag zooms, Back and a double click lead out, and the keyboard does both", () =>
    on("/sweeps/msf-sharing", async (page) => {
      const over = page.locator(".u-over").first();
      await over.scrollIntoViewIfNeeded();
      const box = await over.boundingBox();
      const at = (share) => [box.x + share * box.width, box.y + box.height / 2];
      await page.mouse.move(...at(0.25));
      await page.mouse.down();
      await page.mouse.move(...at(0.5), { steps: 5 });
      await page.mouse.up();
      await page.waitForURL(/zoom=/);
      const [from, to] = new URL(page.url()).searchParams
        .get("zoom")
        .split("~")
        .map(Number);
      assert.ok(
        from > 100 && from < 250 && to > 250 && to < 400,
        `${from} to ${to}`,
      );
      await page.goBack();
      await page.waitForURL((url) => !url.searchParams.has("zoom"));
      const image = page.getByRole("img", { name: /Line chart of val\/top1/ });
      await image.focus();
      await page.keyboard.press("+");
      await page.waitForURL(/zoom=/);
      const [left] = new URL(page.url()).searchParams
        .get("zoom")
        .split("~")
        .map(Number);
      await page.keyboard.press("ArrowRight");
      await settles(async () =>
        assert.ok(
          Number(new URL(page.url()).searchParams.get("zoom").split("~")[0]) >
            left,
        ),
      );
      await over.dblclick();
      await page.waitForURL((url) => !url.searchParams.has("zoom"));
      const zoomIn = page.getByRole("button", { name: "Zoom in" });
      await zoomIn.focus();
      await page.keyboard.press("Enter");
      await page.waitForURL(/zoom=/);
      await page.getByRole("button", { name: "Show all", exact: true }).click();
      await page.waitForURL((url) => !url.searchParams.has("zoom"));
    }));

  test("axes, smoothing and bands are in the address and said; an axis that is not known says why", () =>
    on("/sweeps/msf-sharing?metric=loss", async (page) => {
      await page.getByLabel("X axis").selectOption("epoch");
      await page.waitForURL(/axis=epoch/);
      await page
        .getByRole("img", { name: /val\/loss over epoch 12/ })
        .waitFor();
      const gpu = page.getByLabel("X axis").locator("option[value=gpu]");
      assert.equal(
        await gpu.innerText(),
        "GPU time (unknown: it asked for no GPU)",
      );
      assert.equal(await gpu.isDisabled(), true);
      await page.getByText("No smoothing.").waitFor();
      await page.getByLabel("Smoothing").selectOption("ema");
      await page.waitForURL(/smooth=ema-0\.9/);
      await page
        .getByText(
          "Lines are smoothed: exponential mean, factor 0.9; the raw curve is faint behind them.",
        )
        .waitFor();
      await page.getByLabel("Band").selectOption("ci");
      await page.getByText("band: 95 % confidence interval (t)").waitFor();
      await page.getByLabel("log y").check();
      await page.waitForURL(/logy=1/);
      await page.reload();
      await page.getByText("exponential mean, factor 0.9").waitFor();
      assert.equal(await page.getByLabel("log y").isChecked(), true);
      const [head, first] = await csvOf(page, "val/loss");
      assert.deepEqual(head, [
        "metric",
        "line",
        "step",
        "epoch",
        "value",
        "smoothed",
        "low",
        "high",
        "n",
      ]);
      assert.equal(Number(first[3]), Number(first[2]) / 50);
    }));

  test("values that a logarithmic axis has no place for are counted", async () => {
    const run = await runningRun();
    await on(`/runs/${run}?logy=1&zoom=0~100`, async (page) => {
      await chart(page, "long")
        .getByText("1 value of 0 or less is not on the logarithmic axis")
        .waitFor();
      await page.goto(dashboard.at(`/runs/${run}?logx=1`).href);
      await chart(page, "long")
        .getByText("1 point at step 0 is not on the logarithmic axis")
        .waitFor();
    });
  });

  test("the lines nearest to the cursor are told first, with their own steps", () =>
    on("/sweeps/msf-sharing?by=runs", async (page) => {
      const over = page.locator(".u-over").first();
      const { width, height } = await over.boundingBox();
      const nearest = page
        .locator(".chart-key-floating")
        .first()
        .locator("li")
        .first();
      await over.hover({ position: { x: width * 0.97, y: 2 } });
      await settles(async () =>
        assert.match(await nearest.innerText(), /^r, seed 0/),
      );
      await over.hover({ position: { x: width * 0.97, y: height - 3 } });
      await settles(async () =>
        assert.match(
          await nearest.innerText(),
          /^a, seed \d\s+\d+\.\d{4,}\s+600$/,
        ),
      );
    }));

  test("of many rows the ends, the baseline and what is picked are strong, and rows are found by their text", async () => {
    await dashboard.tell("crowd crowd 40");
    await on("/sweeps/crowd", async (page) => {
      await page.getByText("the others are faint").waitFor();
      const key = page.getByRole("group", { name: "Rows shown in the charts" });
      await key.getByRole("button", { name: "Draw row-7 strongly" }).click();
      await page.waitForURL(/pick=row-7/);
      await settles(async () =>
        assert.equal(
          await key
            .getByRole("button", { name: "Draw row-7 strongly" })
            .getAttribute("aria-pressed"),
          "true",
        ),
      );
      await page
        .getByRole("searchbox", { name: "Find rows in the charts" })
        .fill("number 39");
      await page.getByText("1 of 40 rows").waitFor();
      await page.getByRole("img", { name: /val\/loss .* 1 line;/ }).waitFor();
      assert.equal(new URL(page.url()).searchParams.get("rows"), "number 39");
    });
  });

  test("names are data, however hostile", async () => {
    await dashboard.tell("hostile trap");
    await on("/sweeps/trap", async (page) => {
      await page.locator(".u-over").first().hover();
      await settles(async () =>
        assert.ok(
          (await page.getByText("<img src=x onerror=alert(1)>").count()) > 0,
        ),
      );
      assert.equal(await page.locator("img").count(), 0);
      const width = await page.evaluate(
        () => document.documentElement.scrollWidth,
      );
      assert.ok(width <= 1360, `the page is as wide as the window: ${width}`);
    });
  });
});
