// SPDX-License-Identifier: Apache-2.0
// Real trainings under an open page: from the editor to the copied table, while the scheduler is stopped and killed. SCREENSHOTS=folder keeps pictures.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { button, heading, missing, said, settles, startBrowser, visit, write } from "./fixture.mjs";
import { missingPrograms, startFleet, trainedFile } from "./fleet.mjs";

const kSkip = missing() || missingPrograms();
const kScreenshots = process.env.SCREENSHOTS;

const isLive = (page) => page.locator(".live-live").waitFor();
const lost = (page) => page.locator(".banner").getByText(/No connection to the server since/);
const rowOf = (page, id) => page.locator("table.ablation tbody tr").filter({ has: page.locator(".row-id", { hasText: new RegExp(`^${id}$`) }) });
const cell = (page, id) => rowOf(page, id).locator("td").first();
/** So long trainings may take on a busy machine, in ms. */
const kTrains = { timeout: 240_000 };
/** What a server that is lost would answer to what the page asks for meanwhile. */
const kLost = /ERR_(CONNECTION|EMPTY_RESPONSE|INCOMPLETE)|Failed to fetch/;

describe("real trainings under an open page", { skip: kSkip }, () => {
  let fleet;
  let browser;
  before(async () => {
    [fleet, browser] = await Promise.all([startFleet(), startBrowser()]);
    await settles(async () => assert.equal(fleet.json("workers").workers[0]?.connected, true));
  });
  after(async () => {
    await browser?.close();
    await fleet?.stop();
  });

  const at = (path) => new URL(path, fleet.url);
  const on = (path, steps, options) => visit(browser, at(path), steps, options);
  const served = async (path) => (await fetch(at(`/api/v1${path}`))).json();
  const trials = (sweep) => fleet.json("show", sweep).trials;
  const running = (sweep, step) => trials(sweep).find((trial) => trial.state === "TRIAL_STATE_RUNNING" && Number(trial.step ?? 0) >= step);
  const clipboard = { permissions: ["clipboard-read", "clipboard-write"] };
  async function copied(page) {
    await page.locator("summary", { hasText: "Copy table" }).click();
    await button(page, "Copy as LaTeX").click();
    await page.getByRole("status").filter({ hasText: "of LaTeX." }).waitFor();
    await page.keyboard.press("Escape");
    return page.evaluate(() => navigator.clipboard.readText());
  }
  async function picture(page, name) {
    if (!kScreenshots) return;
    mkdirSync(kScreenshots, { recursive: true });
    await page.screenshot({ path: `${kScreenshots}/live-${name}.png`, animations: "disabled" });
  }

  test("from the editor to the copied table, past a scheduler that is stopped and one that is killed", () =>
    on(
      "/submit",
      async (page) => {
        await write(page, trainedFile("live"));
        await page.getByText("The file is valid.").waitFor();
        await page.keyboard.press("Control+Enter");
        await heading(page, "live");
        await said(page, "Submitted live: 6 new trials.").waitFor();
        await settles(async () => assert.match(await cell(page, "orig").innerText(), /^\d+\.\d\d/), kTrains);
        const others = [];
        while (others.length < 7) others.push(await page.context().newPage());
        const tabs = [page, ...others];
        for (const tab of others) await tab.goto(at("/sweeps/live").href);
        await Promise.all(tabs.map(isLive));
        for (const tab of tabs) await tab.evaluate(() => (window.stillTheSamePage = true));
        await settles(() => assert.ok(running("live", 10), "one is in the middle of its training"), kTrains);

        // stopped: nothing closes a connection, and the worker trains on
        fleet.freeze();
        const shown = () => page.locator("table.ablation tbody").innerText();
        let before;
        await settles(async () => {
          before = await shown();
          await page.waitForTimeout(500);
          assert.equal(await shown(), before);
        });
        await button(page, "Priority…").click();
        const dialog = page.getByRole("dialog", { name: "Priority of live" });
        await dialog.getByLabel("Priority").fill("3");
        await page.keyboard.press("Enter");
        await Promise.all(tabs.map((tab) => lost(tab).waitFor()));
        await page.getByText("Reconnecting…").waitFor();
        await picture(page, "stopped");
        assert.equal(await shown(), before, "what was known stays");
        assert.equal(await page.locator("main [role=alert]").count(), 0, "and nothing is an error");
        fleet.thaw();
        await Promise.all(tabs.map(isLive));
        await lost(page).waitFor({ state: "detached" });
        await said(page, "live: priority 3").waitFor();
        assert.equal(fleet.summary("live").priority, 3);

        // killed: half of what it was told is in its file, and half with the worker
        assert.notEqual(fleet.summary("live").state, "SWEEP_STATE_COMPLETED", "there is something left to do");
        await fleet.kill();
        await Promise.all(tabs.map((tab) => lost(tab).waitFor()));
        fleet.startAgain();
        await Promise.all(tabs.map(isLive));
        assert.equal(await lost(page).count(), 0);

        await Promise.all(tabs.map((tab) => tab.locator(".summary").getByText("4 of 6 trials completed, 2 failed").waitFor(kTrains)));
        for (const tab of tabs) assert.equal(await tab.evaluate(() => window.stillTheSamePage), true, "no page was loaded anew");
        const table = await served("/sweeps/live/table");
        for (const [i, id] of ["orig", "msf", "wild"].entries())
          await settles(async () => {
            const [text, n] = await rowOf(page, id).locator("td").allInnerTexts();
            assert.deepEqual([text, n], id === "wild" ? ["2/2 diverged", "0/2"] : [table.rows[i].cells[0].text, "2"]);
          });
        await picture(page, "complete");
        assert.equal(await copied(page), fleet.ablate("table", "live", "--format", "latex"));
        assert.equal(await rowOf(page, "wild").getByText("<img src=x onerror=alert(1)>").count(), 1, "a label is text");
      },
      { expected: kLost, ...clipboard },
    ));

  test("nothing is lost and nothing is doubled: each trial has one attempt, each run the points of an undisturbed one, the change of priority one line", async () => {
    assert.deepEqual(trials("live").map(({ attempt, state }) => [attempt, state]), [
      ...Array(4).fill([1, "TRIAL_STATE_COMPLETED"]),
      ...Array(2).fill([1, "TRIAL_STATE_FAILED"]),
    ]);
    const { runs } = await served("/runs?sweep=live");
    assert.equal(runs.length, 6);
    const points = ({ metrics }) => metrics.map(({ name, count, last_step }) => [name, count, last_step]).filter(([name]) => /^(train|val)\//.test(name)).sort();
    const completed = runs.filter(({ state }) => state === "RUN_STATE_COMPLETED").sort((a, b) => a.id - b.id);
    assert.equal(points(completed[0]).find(([name]) => name === "train/loss")[2], completed[0].total_steps);
    for (const run of completed) assert.deepEqual(points(run), points(completed[0]), `run ${run.id} has the points of one that nobody disturbed`);
    assert.ok(trials("live").every(({ repeated_points }) => !repeated_points), "and none came twice");
    assert.equal(fleet.json("audit").lines.filter(({ what }) => what.startsWith("AdjustSweep")).length, 1);
  });

  test("what was trained is compared, and each number is the command's", () =>
    on("/sweeps/live", async (page) => {
      await page.getByRole("link", { name: "Compare" }).first().click();
      await heading(page, "Compare");
      const { runs } = await served("/runs?sweep=live");
      const ids = runs.filter(({ state }) => state === "RUN_STATE_COMPLETED").map(({ id }) => String(id));
      for (const [one, other] of [["live/orig", "live/msf"], ids.slice(0, 2)]) {
        await page.goto(at(`/compare?a=${one}&b=${other}`).href);
        const { metrics } = fleet.json("compare", one, other);
        const shown = metrics.filter(({ a, b }) => a?.text && b?.text).slice(0, 3);
        assert.notEqual(shown.length, 0, JSON.stringify(metrics[0]));
        for (const { a, b } of shown)
          await page.getByRole("row").filter({ hasText: a.text }).filter({ hasText: b.text }).first().waitFor();
        await page.locator("figure canvas").first().waitFor(); // its curves
      }
    }));
});
