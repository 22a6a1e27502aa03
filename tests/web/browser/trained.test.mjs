// SPDX-License-Identifier: Apache-2.0
// Pages of real trainings: a row that failed is retried to a value, and axe-core judges them; a signed-in page and its scheduler's end.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { violationsOf } from "./axe.mjs";
import { button, missing, openPage, said, settles, startBrowser, visit } from "./fixture.mjs";
import { missingPrograms, startFleet, trainedFile } from "./fleet.mjs";

const kSkip = missing() || missingPrograms();
const kTrains = { timeout: 240_000 };

describe("pages of real trainings", { skip: kSkip }, () => {
  let fleet;
  let browser;
  before(async () => {
    [fleet, browser] = await Promise.all([startFleet(), startBrowser()]);
    fleet.ablate("submit", fleet.write("trained.yaml", trainedFile("trained", { seeds: [7] })));
  });
  after(async () => {
    await browser?.close();
    await fleet?.stop();
  });

  const at = (path) => new URL(path, fleet.url);
  const on = (path, steps, options) => visit(browser, at(path), steps, options);
  const served = async (path) => (await fetch(at(`/api/v1${path}`))).json();
  const trials = () => fleet.json("show", "trained").trials;

  test("a training that was killed fails its row; retried from the page it trains to a value", () =>
    on("/sweeps/trained?row=orig", async (page) => {
      const first = page.locator("table.trials tbody tr").first();
      await settles(() => {
        const [trial] = trials();
        assert.ok(Number(trial.step ?? 0) >= 2 && fleet.killRun(trial), "it trains");
      }, kTrains);
      await first.getByText("killed by SIGKILL (9)").waitFor(kTrains);
      await button(page, "Retry 1 in this row").click();
      await said(page, "1 trial requeued.").waitFor();
      await page.locator(".summary").getByText("2 of 3 trials completed, 1 failed").waitFor(kTrains);
      const [row] = (await served("/sweeps/trained/table")).rows;
      assert.match(row.cells[0].text, /^\d+\.\d\d$/);
      const shown = page.locator("table.ablation tbody tr").first().locator("td").first();
      await settles(async () => assert.equal(await shown.innerText(), row.cells[0].text));
      await first.getByText("completed").waitFor();
      assert.deepEqual(
        trials().map(({ attempt, state }) => [attempt, state]),
        [[2, "TRIAL_STATE_COMPLETED"], [1, "TRIAL_STATE_COMPLETED"], [1, "TRIAL_STATE_FAILED"]],
      );
      const printed = fleet.ablate("table", "trained");
      assert.ok(printed.includes(row.cells[0].text), printed);
    }));

  for (const colorScheme of ["light", "dark"])
    test(`pages with real runs and their actions, ${colorScheme}, as axe-core judges them`, () =>
      on(
        "/",
        async (page) => {
          const found = [];
          const { runs } = await served("/runs?sweep=trained&limit=6");
          const failed = runs.find((run) => run.state === "RUN_STATE_FAILED");
          const paths = [
            ...["/", "/sweeps", "/sweeps/trained", "/sweeps/trained?row=wild", "/sweeps/trained/failures"],
            ...[`/runs/${runs[0].id}`, `/runs/${failed.id}`, "/compare?a=trained/orig&b=trained/wild"],
            ...["/queue", "/workers", "/submit?from=trained", "/settings"],
          ];
          for (const path of paths) {
            await page.goto(at(path).href);
            await page.getByRole("heading", { level: 1 }).waitFor();
            await page.waitForFunction(() => !document.querySelector(".skeleton"));
            found.push(...(await violationsOf(page, path)));
          }
          await page.goto(at("/sweeps/trained").href);
          await button(page, "Rename…").waitFor();
          for (const asking of await page.getByRole("group", { name: "Actions on sweep trained" }).locator("[aria-haspopup=dialog]").all()) {
            await asking.click();
            await page.getByRole("dialog").waitFor();
            found.push(...(await violationsOf(page, `dialog of ${await asking.innerText()}`)));
            await page.keyboard.press("Escape");
          }
          assert.deepEqual(found, []);
        },
        { colorScheme, reducedMotion: "reduce" },
      ));
});

describe("a signed-in page whose scheduler is killed", { skip: kSkip }, () => {
  test("says that its session has ended, and signing in leads back to it", async () => {
    const [fleet, browser] = await Promise.all([startFleet({ signIn: true }), startBrowser({ trusting: true })]);
    const { page } = await openPage(browser);
    try {
      const token = fleet.token("submitter", "sue");
      await fleet.signIn(page, token);
      await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Workers" }).click();
      await page.locator(".live-live").waitFor();
      await fleet.kill();
      await page.getByText(/No connection to the server since/).waitFor();
      fleet.startAgain();
      await page.getByRole("alert").filter({ hasText: "You are signed out: the session has ended." }).getByRole("link", { name: "Sign in" }).click();
      await page.getByLabel("Token").fill(token);
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { level: 1, name: "Workers", exact: true }).waitFor();
      await page.locator(".live-live").waitFor();
      await page.getByText("sue").waitFor();
    } finally {
      await browser.close();
      await fleet.stop();
    }
  });
});
