// SPDX-License-Identifier: Apache-2.0
// What stands folded at the ends of pages: a sweep's events, its plan, where it comes from, what trains a run again. SCREENSHOTS=folder
// keeps pictures.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { violationsOf } from "./axe.mjs";
import { missing, openPage, picture, settles, startBrowser, useDashboard, visit } from "./fixture.mjs";
import { missingPrograms, startFleet, sweepFile, trainedFile } from "./fleet.mjs";

/** Unfolds a section, and returns it. */
async function unfolded(page, title) {
  const section = page.locator("details.source").filter({ has: page.locator("summary", { hasText: new RegExp(`^${title}$`) }) });
  await section.locator("summary").click();
  return section;
}

describe("the ends of pages, of a store alone", { skip: missing() }, () => {
  const dashboard = useDashboard();
  const { on, served } = dashboard;

  test("events are read when they are unfolded, follow what happens, and lead to their runs", () =>
    on("/sweeps/msf-sharing", async (page, asked) => {
      await page.locator("details.source").first().waitFor();
      assert.ok(!asked.some(({ pathname }) => pathname.endsWith("/events") && pathname.includes("/sweeps/")));
      const events = await unfolded(page, "Events");
      const table = events.getByRole("table", { name: /^Events of the sweep/ });
      await table.getByText("submit").waitFor();
      await table.getByRole("row").filter({ hasText: "completed" }).first().waitFor();
      const rows = await table.locator("tbody tr").count();
      assert.equal(rows, (await served("/sweeps/msf-sharing/events")).events.length);
      await dashboard.tell("fail");
      const failed = table.getByRole("row").filter({ hasText: "killed by signal 9" });
      await failed.waitFor();
      await picture(page, "events");
      const run = await failed.getByRole("link", { name: /^run \d+$/ }).innerText();
      await failed.getByRole("link", { name: run }).click();
      await page.getByRole("heading", { level: 1, name: new RegExp(`^R${run.slice(1)}`) }).waitFor();
    }));

  test("older events are on further pages", async () => {
    await dashboard.tell("crowd crowd 120");
    await on("/sweeps/crowd", async (page) => {
      const events = await unfolded(page, "Events");
      const lines = events.locator("tbody tr");
      const seen = [];
      for (;;) {
        await settles(async () => assert.notDeepEqual(await lines.allInnerTexts(), seen.at(-1) ?? []));
        seen.push(await lines.allInnerTexts());
        if (seen.at(-1).length < 100) break;
        await events.getByRole("button", { name: "Show older" }).click();
      }
      assert.ok(seen.length > 1);
      assert.equal(seen.flat().length, 3 * 120 + 1, "each trial was leased, ran and completed");
      assert.equal(seen.flat().filter((line) => line.includes("submit")).length, 1);
      await events.getByRole("button", { name: "Show newest" }).click();
      await settles(async () => assert.deepEqual(await lines.allInnerTexts(), seen[0]));
    });
  });

  test("a plan that may not be made here says why", () =>
    on("/sweeps/msf-sharing", async (page) => {
      const plan = await unfolded(page, "Plan");
      await plan.getByText("Read only:").waitFor();
    }));

  test("all of it is on a phone, too", () =>
    on(
      "/sweeps/msf-sharing",
      async (page) => {
        const events = await unfolded(page, "Events");
        await events.getByRole("table").waitFor();
        const [wide, seen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
        assert.ok(wide <= seen, `${wide} pixels of ${seen}`);
      },
      { viewport: { width: 390, height: 800 } },
    ));
});

describe("the ends of pages, of a service", { skip: missing() || missingPrograms() }, () => {
  let fleet, browser, folder;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "ablate-again-"));
    [fleet, browser] = await Promise.all([startFleet(), startBrowser()]);
    fleet.touch("go");
    fleet.touch("mended");
    fleet.ablate("submit", fleet.write("study.yaml", sweepFile("study", fleet.home).replace(/"{params.x}"/, "$&\n    - it's in {run_dir}")));
    fleet.ablate("submit", fleet.write("trained.yaml", trainedFile("trained", { epochs: 1, rows: ["orig"], seeds: [0] })));
    await settles(() => {
      for (const [sweep, count] of [["study", 4], ["trained", 1]]) assert.equal(fleet.summary(sweep).trials.completed, count);
    });
  });
  after(async () => {
    await browser?.close();
    await fleet?.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  const on = (path, steps) => visit(browser, new URL(path, fleet.url), steps);
  const runOf = (sweep) => fleet.json("show", sweep).trials[0].run;
  const commands = async (page) => {
    const again = await unfolded(page, "Train it again");
    const text = (name) => again.getByRole("region", { name }).innerText();
    await again.getByRole("region").first().waitFor();
    return { itself: await text("the command that trains it by itself"), service: await text("the command for the service") };
  };
  const typed = (text) =>
    execFileSync("sh", ["-ec", text], {
      cwd: mkdtempSync(join(folder, "empty-")),
      env: { ...process.env, PATH: `${process.env.ABLATE_BIN}:${process.env.PATH}`, ABLATE_HOME: fleet.home, ABLATE_SCHEDULER: `unix:${fleet.home}/run/scheduler.sock` },
      encoding: "utf8",
    });

  test("what was asked of a sweep is among its events", async () => {
    fleet.ablate("pause", "study");
    fleet.ablate("resume", "study");
    await on("/sweeps/study", async (page) => {
      const events = await unfolded(page, "Events");
      for (const what of ["submit", "pause", "resume"]) await events.getByRole("row").filter({ hasText: what }).first().waitFor();
    });
  });

  test("a sweep's file is planned anew", () =>
    on("/sweeps/study", async (page) => {
      const plan = await unfolded(page, "Plan");
      await plan.getByText("4 stored").waitFor();
      await plan.getByText("Already stored: submitting it again queues nothing.").waitFor();
      await picture(page, "plan-again");
    }));

  test("what trains a command's trial again does so, as it is typed", async () => {
    await on(`/runs/${runOf("study")}`, async (page) => {
      const { itself, service } = await commands(page);
      assert.equal(service, "ablate rerun study a");
      assert.match(typed(itself), /"acc":0/);
      await picture(page, "train-again");
      typed(service);
      await settles(() => assert.equal(fleet.json("show", "study").summary.trials.completed, 4));
    });
  });

  test("so does that of a trial of the trainer, and it comes to the same", async () => {
    const run = runOf("trained");
    await on(`/runs/${run}`, async (page) => {
      const { itself } = await commands(page);
      assert.match(itself, /^printf [\s\S]* > trial\.json\nablate-trainer train --config trial\.json --run-dir run --threads 1$/);
      const last = typed(itself)
        .split("\n")
        .filter((line) => line.includes('"val/top1"'))
        .map((line) => JSON.parse(line).values["val/top1"])
        .at(-1);
      const { summary } = await (await fetch(new URL(`/api/v1/runs/${run}`, fleet.url))).json();
      assert.equal(last, Number(summary.metrics.find(({ name }) => name === "val/top1").last));
    });
  });

  test("a run says with what it was made, and where its sweeps come from", () =>
    on(`/runs/${runOf("trained")}`, async (page) => {
      const from = await unfolded(page, "Provenance");
      await from.getByText("PyTorch").waitFor();
      await from.getByRole("region", { name: "Provenance of trained" }).getByText(/^Submitted/).waitFor();
    }));

  for (const colorScheme of ["light", "dark"])
    test(`all of it is for everybody: ${colorScheme}`, async () => {
      const found = [];
      for (const viewport of [
        { width: 1360, height: 900 },
        { width: 390, height: 844 },
      ]) {
        const { page } = await openPage(browser, { colorScheme, viewport, reducedMotion: "reduce" });
        for (const path of ["/sweeps/study", `/runs/${runOf("study")}`, `/runs/${runOf("trained")}`]) {
          await page.goto(new URL(path, fleet.url).href);
          await page.locator("details.source").last().waitFor();
          for (const summary of await page.locator("details.source > summary").all()) await summary.click();
          await page.waitForFunction(() => !document.querySelector(".skeleton"));
          found.push(...(await violationsOf(page, `${path}, ${viewport.width}`)));
          const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          assert.ok(wide <= 0, `${path} is ${wide} pixels wider than ${viewport.width}`);
        }
        await page.context().close();
      }
      assert.deepEqual(found, []);
    });
});
