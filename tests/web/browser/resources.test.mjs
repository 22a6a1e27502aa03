// SPDX-License-Identifier: Apache-2.0
// What a run took of its machine: charts of one time axis that follow the run, tables behind them, and why there are none.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { missing, settles, useDashboard } from "./fixture.mjs";

describe("what a run took of its machine", { skip: missing() }, () => {
  const [kSampled, kLong, kNone] = [4, 5, 6]; // completed runs; the first has a GPU
  const dashboard = useDashboard({
    async ready({ tell }) {
      await tell(`sample ${kSampled} 0 120`);
      await tell(`sample ${kLong} 0 4000`);
    },
  });
  const { on } = dashboard;
  const section = (page) => page.getByRole("region", { name: "Resources" });
  const chart = (page, name) => section(page).getByRole("img", { name });

  test("each quantity that was sampled has a chart with its unit, the whole in a line", () =>
    on(`/runs/${kSampled}`, async (page) => {
      await chart(page, /^Line chart of CPU \(cores\) over 2 min 00 s, 1 line; newest values: cores in use [\d.]+ cores/).waitFor();
      await chart(page, /^Line chart of memory \(GiB\).*resident 1\.1172 GiB/).waitFor();
      await chart(page, /^Line chart of GPU \(%\).*time computing 80 %/).waitFor();
      await chart(page, /^Line chart of disk traffic \(MiB\/s\).*read 0 MiB\/s; written 100 MiB\/s/).waitFor();
      await chart(page, /^Line chart of waiting for data \(%\) over 1 min 00 s.*time waiting 25 %/).waitFor();
      const facts = await section(page).locator("dl").innerText();
      assert.match(facts.replaceAll("\n", " "), /Peak memory 1\.1172 GiB.*Mean GPU 80 %.*Waited for data 25 % of training/i);
      await section(page).getByText("60 samples, all of them drawn.").waitFor();
    }));

  test("what was not sampled has no chart", () =>
    on(`/runs/${kLong}`, async (page) => {
      await chart(page, /^Line chart of CPU/).waitFor();
      assert.equal(await chart(page, /GPU/).count(), 0);
    }));

  test("a long run is drawn in means with a band, and a stretch of it sample by sample", () =>
    on(`/runs/${kLong}`, async (page, asked) => {
      await section(page).getByText(/2\u202f000 samples in means of 10 s, from lowest to highest as a band/).waitFor();
      const cpu = chart(page, /^Line chart of CPU/);
      await cpu.focus();
      for (let i = 0; i < 3; ++i) await page.keyboard.press("+");
      await section(page).getByText(/samples, all of them drawn/).waitFor();
      const ranges = asked.filter(({ pathname, searchParams }) => /resources$/.test(pathname) && searchParams.has("from"));
      assert.ok(ranges.length >= 1, "the stretch was read anew");
      await section(page).getByRole("button", { name: "Show all of the run" }).click();
      await section(page).getByText(/in means of 10 s/).waitFor();
    }));

  test("the values near the cursor have their unit, in all charts at once", () =>
    on(`/runs/${kSampled}`, async (page) => {
      const cpu = chart(page, /^Line chart of CPU/);
      await cpu.scrollIntoViewIfNeeded();
      const box = await cpu.boundingBox();
      await settles(async () => {
        await page.mouse.move(box.x + box.width * 0.6, box.y + box.height * 0.5);
        const told = await section(page).locator(".chart-cursor").allInnerTexts();
        assert.ok(told.length >= 6 && told.every((text) => text !== "" && text === told[0]), told.join("|"));
      });
      assert.match(await section(page).locator(".chart-key-floating").first().innerText(), /cores/);
    }));

  test("behind each chart is its table", () =>
    on(`/runs/${kSampled}`, async (page) => {
      const memory = section(page).locator("figure").filter({ hasText: "memory (GiB)" }).first();
      await memory.getByRole("button", { name: "Show as table" }).click();
      const table = memory.getByRole("region", { name: "memory (GiB) as a table" });
      assert.equal(await table.getByRole("row").nth(1).getByRole("cell").first().innerText(), "1.0020");
    }));

  test("a run that goes on grows by the events of the page", async () => {
    const { runs } = await dashboard.served("/runs?sweep=msf-sharing");
    const run = runs.find(({ state }) => state === "RUN_STATE_RUNNING").id;
    await on(`/runs/${run}`, async (page) => {
      await section(page).getByText("No samples").waitFor();
      await dashboard.tell(`sample ${run} 0 10`);
      await section(page).getByText("5 samples, all of them drawn.").waitFor();
      await dashboard.tell(`sample ${run} 10 10`);
      await section(page).getByText("10 samples, all of them drawn.").waitFor();
    });
  });

  test("a run without samples says why", () =>
    on(`/runs/${kNone}`, async (page) => {
      await section(page).getByText("No samples", { exact: true }).waitFor();
      await section(page).getByText(/its worker sent no samples: it is an older release, or cannot read \/proc/).waitFor();
      assert.equal(await section(page).locator("figure").count(), 0);
    }));

  test("on a phone nothing is wider than the page", () =>
    on(`/runs/${kSampled}`, async (page) => {
      await page.setViewportSize({ width: 360, height: 740 });
      await chart(page, /^Line chart of CPU/).waitFor();
      await settles(async () => assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)));
    }));
});
