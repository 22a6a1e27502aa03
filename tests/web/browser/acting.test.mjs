// SPDX-License-Identifier: Apache-2.0
// What people do from the pages, with a real scheduler and worker. SCREENSHOTS=folder keeps pictures.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { button, heading, missing, openPage, picture, said, settles, startBrowser, visit, write } from "./fixture.mjs";
import { missingPrograms, startFleet, sweepFile } from "./fleet.mjs";

const kSkip = missing() || missingPrograms();

describe("acting", { skip: kSkip }, () => {
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

  const on = (path, steps, expected) => visit(browser, new URL(path, fleet.url), steps, { expected });
  const state = (sweep) => fleet.summary(sweep).state.replace("SWEEP_STATE_", "").toLowerCase();
  const trials = (sweep) => fleet.summary(sweep).trials;

  test("a sweep is written, mended where the server says, planned and submitted", () =>
    on("/", async (page) => {
      await page.getByRole("link", { name: "New sweep" }).click();
      await heading(page, "New sweep");
      const file = sweepFile("study", fleet.home);
      await write(page, file.replace("seeds: [0, 1]", "seedz: [0, 1]"));
      const problem = page.getByRole("list", { name: "Problems" }).getByRole("listitem").first();
      await problem.filter({ hasText: "seeds" }).waitFor();
      await picture(page, "submit-problem");
      const line = file.split("\n").findIndex((text) => text.startsWith("seeds")) + 1;
      await problem.getByRole("button", { name: `Go to line ${line}, column 1` }).click();
      for (const key of ["ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight", "Delete", "s"]) await page.keyboard.press(key);
      await page.keyboard.press("Escape"); // what is suggested
      await page.getByText("The file is valid.").waitFor();
      await page.locator(".plan dd").first().filter({ hasText: "4" }).waitFor();
      await picture(page, "submit");
      await button(page, "Submit").click();
      await heading(page, "study");
      await said(page, "Submitted study: 4 new trials.").waitFor();
      assert.equal(fleet.json("show", "study").text, file, "as it was written");
    }));

  test("what may stand somewhere is suggested, by the schema", () =>
    on("/submit", async (page) => {
      await write(page, "ablate: 1\nname: x\nbase:\n  model: {family: sw");
      await page.getByRole("option", { name: "swin" }).first().waitFor();
      await page.keyboard.press("Escape");
      await write(page, "ablate: 1\nre");
      await page.getByRole("option", { name: "resources" }).waitFor();
    }));

  test("what was written and not submitted is still there on the way back", () =>
    on("/submit", async (page) => {
      await write(page, "ablate: 1\nname: half-written\n");
      await page.getByRole("list", { name: "Problems" }).waitFor();
      await page.getByRole("link", { name: "Workers" }).click();
      await heading(page, "Workers");
      await page.goBack();
      await page.getByText("half-written").waitFor();
      const other = await page.context().newPage();
      await page.close();
      await other.goto(new URL("/submit", fleet.url).href);
      await other.getByText("half-written").waitFor();
      await button(other, "Discard draft").click();
      await other.getByText("half-written").waitFor({ state: "detached" });
      await other.reload();
      await heading(other, "New sweep");
      await other.getByRole("textbox", { name: "Sweep file" }).waitFor();
      assert.equal(await other.getByText("half-written").count(), 0);
    }));

  test("an example that takes the place of a draft gives it back, by the notice and by Ctrl+Z", () =>
    on("/submit", async (page) => {
      await write(page, "ablate: 1\nname: my-own\n");
      const begin = page.getByLabel("Begin with");
      const example = await begin.locator("option").nth(1).innerText();
      for (const undo of [() => button(said(page, "replaced your text"), "Undo").click(), () => page.keyboard.press("Control+z")]) {
        await begin.selectOption(example);
        await said(page, `The example ${example} replaced your text.`).waitFor();
        await page.getByText("my-own").waitFor({ state: "detached" });
        await undo();
        await page.getByText("my-own").waitFor();
      }
    }));

  test("a file that could not be checked is checked when the server is there again", () =>
    on(
      "/submit",
      async (page) => {
        await page.locator(".live-live").waitFor();
        await fleet.kill();
        await write(page, "ablate: 1\nname: later\n");
        await page.getByText("Not checked").waitFor();
        await page.locator(".banner").filter({ hasText: "ablate up" }).waitFor();
        fleet.startAgain();
        await page.locator(".live-live").waitFor();
        await page.getByRole("list", { name: "Problems" }).waitFor();
      },
      /ERR_|Failed to fetch/,
    ));

  test("a sweep pauses, and goes on by the notice that says so", () =>
    on("/sweeps/study", async (page) => {
      await settles(async () => assert.equal(trials("study").running, 1));
      await button(page, "Pause").click();
      await said(page, "Paused study: 1 running trial continues to the end.").waitFor();
      assert.equal(state("study"), "paused");
      await button(page, "Resume").first().waitFor();
      await picture(page, "paused");
      await said(page, "Paused study").getByRole("button", { name: "Stop it too" }).click();
      await said(page, "go back to the queue").getByRole("button", { name: "Resume" }).click();
      await said(page, "Resumed study.").waitFor();
      assert.equal(await page.locator(".said").count(), 1, "what was said of it before is gone");
      assert.equal(state("study"), "active");
      await button(page, "Pause").click();
      await said(page, "Paused study").waitFor();
      await button(page, "Resume").first().click();
      await said(page, "Resumed study.").waitFor();
      assert.equal(await said(page, "Paused study").count(), 0);
    }));

  test("its priority is set, by keyboard alone, and taken back", () =>
    on("/sweeps/study", async (page) => {
      await button(page, "Priority…").focus();
      await page.keyboard.press("Enter");
      const dialog = page.getByRole("dialog", { name: "Priority of study" });
      await dialog.waitFor();
      await dialog.getByLabel("Priority").fill("7");
      await picture(page, "priority");
      await page.keyboard.press("Enter");
      await said(page, "study: priority 7").waitFor();
      assert.equal(fleet.summary("study").priority, 7);
      await settles(async () =>
        assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Priority…", "the focus is back"),
      );
      await button(page, "Undo").click();
      await said(page, "study: priority 0 again.").waitFor();
      assert.equal(fleet.summary("study").priority, 0);
    }));

  test("a trial is cancelled once it was asked, and retried", () =>
    on("/sweeps/study", async (page) => {
      const cancel = page.getByRole("button", { name: "Cancel row a, seed 1 of study" });
      await cancel.click();
      const dialog = page.getByRole("dialog", { name: "Cancel row a, seed 1?" });
      await dialog.waitFor();
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
      assert.equal(trials("study").cancelled, 0, "nothing was done");
      await cancel.click();
      await dialog.getByRole("button", { name: "Cancel the trial" }).click();
      await said(page, "Cancelled row a, seed 1 of study.").waitFor();
      assert.equal(trials("study").cancelled, 1);
      await page.getByRole("button", { name: "Retry row a, seed 1" }).click();
      await said(page, "1 trial requeued.").waitFor();
      assert.equal(trials("study").cancelled, 0);
    }));

  test("a dialog stays while its line moves away in a long table", async () => {
    const file = join(fleet.home, "wide.yaml");
    const wide = sweepFile("wide", fleet.home).replace("seeds: [0, 1]", "seeds: 75");
    writeFileSync(file, wide);
    fleet.ablate("submit", file);
    fleet.ablate("pause", "wide");
    await on("/sweeps/wide?trials=state", async (page) => {
      const rows = page.locator("table.trials tbody tr:not(.gap)");
      const cancel = rows.getByRole("button", { name: "Cancel row a, seed 1 of wide", exact: true });
      await cancel.click();
      const dialog = page.getByRole("dialog");
      await dialog.waitFor();
      fleet.ablate("cancel", "wide", "--row", "a", "--seed", "1"); // it is sorted behind all that wait
      await page.locator(".summary").getByText("1 cancelled").waitFor();
      await page.waitForTimeout(500);
      assert.ok(await dialog.isVisible());
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
      await settles(async () => assert.equal(await cancel.count(), 0, "then the table is as it is"));
    });
    fleet.ablate("cancel", "wide");
  });

  test("a failed row is retried when it was mended", () =>
    on("/sweeps/study?row=b", async (page) => {
      fleet.touch("go");
      await settles(async () => assert.deepEqual([trials("study").completed, trials("study").failed], [2, 2]));
      fleet.touch("mended");
      await button(page, "Retry 2 in this row").click();
      await said(page, "2 trials requeued.").waitFor();
      await settles(async () => assert.equal(state("study"), "completed"));
      await page.locator(".summary").getByText("completed", { exact: true }).waitFor();
    }));

  test("it is extended with a seed, and says before what that would change", () =>
    on("/sweeps/study", async (page) => {
      await page.getByRole("link", { name: "Extend…" }).click();
      await heading(page, "Extend study");
      await page.getByText("Nothing to extend: the file has not changed.").waitFor();
      await write(page, sweepFile("study", fleet.home).replace("[0, 1]", "[0, 1, 2]"));
      await page.locator(".changes").filter({ hasText: "2 new trials" }).waitFor();
      await picture(page, "extend");
      await button(page, "Extend").click();
      await said(page, "Extended study: 2 new trials.").waitFor();
      await settles(async () => assert.equal(trials("study").completed, 6));
    }));

  test("a name that is taken by other content is refused in place", () =>
    on(
      "/submit?from=study",
      async (page) => {
        await page.getByText("The file is valid.").waitFor();
        await page.getByText("study-copy").first().waitFor(); // a name that is free
        const grown = sweepFile("study", fleet.home).replace("[0, 1]", "[0, 1, 2, 3]");
        await write(page, grown);
        await page.locator(".plan dd").first().filter({ hasText: "8" }).waitFor();
        await button(page, "Submit").click();
        const alert = page.getByRole("alert").filter({ hasText: "already exists with different content" });
        await alert.waitFor();
        assert.equal(new URL(page.url()).pathname, "/submit");
        await picture(page, "submit-taken");
        await alert.getByRole("button", { name: "Extend study…" }).click();
        await heading(page, "Extend study");
        await page.locator(".changes").filter({ hasText: "2 new trials" }).waitFor();
      },
      /409/,
    ));

  test("it is renamed, and the address follows", () =>
    on("/sweeps/study", async (page) => {
      await button(page, "Rename…").click();
      const dialog = page.getByRole("dialog", { name: "Rename study" });
      await dialog.getByLabel("New name").fill("renamed");
      await dialog.getByRole("button", { name: "Rename" }).click();
      await heading(page, "renamed");
      assert.equal(new URL(page.url()).pathname, "/sweeps/renamed");
      await button(page, "Undo").click();
      await heading(page, "study");
      assert.equal(state("study"), "completed");
    }));

  test("a sweep is cancelled once it was said what is lost, and an error stays in the dialog", () =>
    on(
      "/submit",
      async (page) => {
        await write(page, sweepFile("doomed", fleet.home).replace("{x: 1}", "{x: 1, wait: 1}").replace(`${fleet.home}/go`, `${fleet.home}/never`));
        await page.getByText("The file is valid.").waitFor();
        await page.keyboard.press("Control+Enter");
        await heading(page, "doomed");
        await settles(async () => assert.equal(trials("doomed").running, 1));
        await button(page, "Cancel…").first().click();
        const dialog = page.getByRole("dialog", { name: "Cancel doomed?" });
        await dialog.getByText("1 running trial").waitFor();
        await dialog.getByText("3 waiting trials will not run").waitFor();
        await picture(page, "cancel");
        // it has another name by then
        fleet.ablate("rename", "doomed", "dooomed");
        await dialog.getByRole("button", { name: "Cancel the sweep" }).click();
        await dialog.getByRole("alert").filter({ hasText: "doomed" }).waitFor();
        fleet.ablate("rename", "dooomed", "doomed");
        await dialog.getByRole("button", { name: "Cancel the sweep" }).click();
        await said(page, "Cancelled doomed.").waitFor();
        assert.equal(state("doomed"), "cancelled");
      },
      /404/,
    ));

  test("a worker is drained with a reason, and put back", () =>
    on("/workers", async (page) => {
      await button(page, "Drain w1").click();
      const dialog = page.getByRole("dialog", { name: "Drain w1?" });
      await dialog.getByLabel("Reason, shown to others").fill("new <b>driver</b>");
      await dialog.getByRole("button", { name: "Drain", exact: true }).click();
      await said(page, "w1 gets no more trials.").waitFor();
      await page.getByText("drained: new <b>driver</b>").waitFor();
      assert.equal(fleet.json("workers").workers[0].drained, "new <b>driver</b>");
      await picture(page, "drained");
      await page.getByRole("button", { name: "Give w1 trials again" }).click();
      await said(page, "w1 gets trials again.").waitFor();
      assert.equal(fleet.json("workers").workers[0].drained, undefined);
    }));

  test("a paper's table is planned and submitted at a scale, and what it misses is had from its page", async () => {
    const name = "msf-table-1-demo";
    await on("/tables?table=msf/table-1", async (page) => {
      const form = page.getByRole("group", { name: "Submit msf/table-1" });
      await form.getByLabel("Scale").selectOption("demo");
      await form.getByRole("button", { name: "Submit msf/table-1…" }).click();
      const dialog = page.getByRole("dialog", { name: "Submit msf/table-1 at scale demo?" });
      await dialog.getByRole("table", { name: "Rows of the plan" }).getByRole("row").nth(1).waitFor();
      await picture(page, "submit-table");
      await dialog.getByRole("button", { name: "Submit", exact: true }).click();
      await said(page, `Submitted ${name}:`).getByRole("link", { name: `Show ${name}` }).click();
      await heading(page, name);
    });
    const again = fleet.json("submit", "msf/table-1", "--scale", "demo");
    assert.equal(again.created ?? false, false, "the command line submits the same text");
    fleet.ablate("pause", name);
    await on(`/tables?table=msf/table-1&sweep=${name}`, async (page) => {
      await button(page, `Resume ${name}`).click();
      await said(page, `Resumed ${name}.`).waitFor();
      assert.equal(state(name), "active");
      fleet.ablate("cancel", name);
      await button(page, `Retry ${name}`).click();
      await said(page, "requeued.").waitFor();
      assert.equal(trials(name).cancelled, 0);
    });
    fleet.ablate("cancel", name);
  });

  test("all of it is in the audit, as the dashboard's", async () => {
    const lines = fleet.json("audit").lines;
    for (const what of ["Submit", "PauseSweep", "ResumeSweep", "AdjustSweep", "CancelTrial", "RetrySweep", "ExtendSweep", "RenameSweep", "CancelSweep", "DrainWorker"])
      assert.ok(lines.some((line) => line.what === `${what} (dashboard)`), what);
  });

  test("a page of another site can have nothing done", async () => {
    await on("/sweeps/study", async () => {});
    const target = new URL("/api/v1/actions/RenameSweep", fleet.url).href;
    const body = JSON.stringify({ sweep: "study", name: "stolen" });
    const before = fleet.json("audit").lines.length;
    const other = createServer((_, answer) =>
      answer.writeHead(200, { "Content-Type": "text/html" }).end(`<!doctype html><title>other</title>
        <form method="post" action="${target}" enctype="text/plain"><input name='${body.slice(0, -1)},"x":"' value='"}'></form>`),
    );
    await new Promise((ready) => other.listen(0, "127.0.0.1", ready));
    try {
      // localhost is another site than 127.0.0.1; its other port is the same one
      for (const host of ["localhost", "127.0.0.1"]) {
        const { page } = await openPage(browser);
        await page.goto(`http://${host}:${other.address().port}/`);
        const tried = await page.evaluate(
          async ([to, text]) => {
            const attempts = [
              { mode: "no-cors", headers: { "Content-Type": "text/plain" } },
              { mode: "no-cors", headers: { "Content-Type": "application/json" } },
              { mode: "cors", headers: { "Content-Type": "application/json" } },
              { mode: "cors", headers: { "Content-Type": "application/json" }, credentials: "include" },
            ];
            const outcomes = [];
            for (const attempt of attempts)
              outcomes.push(
                await fetch(to, { method: "POST", body: text, ...attempt }).then(
                  (answer) => answer.type,
                  () => "blocked",
                ),
              );
            return outcomes;
          },
          [target, body],
        );
        assert.deepEqual(tried, ["blocked", "blocked", "blocked", "blocked"], "no answer can be read");
        const answered = page.waitForResponse(target);
        await page.evaluate(() => document.forms[0].submit());
        assert.equal((await answered).status(), 403);
        await page.context().close();
      }
    } finally {
      other.close();
    }
    assert.equal(state("study"), "completed", "it has its name");
    assert.equal(fleet.json("audit").lines.length, before, "and nobody was asked");
  });

  test("a results file's dashboard says that it only shows, and refuses", async () => {
    const url = await fleet.startReader();
    const { page } = await openPage(browser);
    await page.goto(new URL("/sweeps/study", url).href);
    await page.getByText("Read only: this dashboard shows a results file, which is read-only.").waitFor();
    assert.equal(await page.getByRole("group", { name: "Actions on sweep study" }).count(), 0);
    assert.equal(await page.getByRole("link", { name: "New sweep" }).count(), 0);
    const refused = await page.evaluate(async () => {
      const answer = await fetch("/api/v1/actions/PauseSweep", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ sweep: "study" }),
      });
      return [answer.status, (await answer.json()).message];
    });
    assert.deepEqual(refused, [405, "POST is not served: this dashboard shows a results file, which is read-only"]);
    await page.goto(new URL("/submit", url).href);
    await page.getByText("You cannot submit here.").waitFor();
    await page.context().close();
  });
});

describe("acting with a role", { skip: kSkip }, () => {
  let fleet;
  let browser;
  before(async () => {
    [fleet, browser] = await Promise.all([startFleet({ signIn: true }), startBrowser()]);
  });
  after(async () => {
    await browser?.close();
    await fleet?.stop();
  });

  async function signedIn(role, name, steps) {
    const { page } = await openPage(browser, { ignoreHTTPSErrors: true });
    await fleet.signIn(page, fleet.token(role, name));
    await steps(page);
    await page.context().close();
  }
  const post = (page, method, request) =>
    page.evaluate(
      async ([name, body]) => {
        const answer = await fetch(`/api/v1/actions/${name}`, {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify(body),
        });
        return [answer.status, (await answer.json()).message];
      },
      [method, request],
    );

  test("a submitter submits, and is the owner; a viewer looks, and the server refuses the rest", async () => {
    await signedIn("submitter", "sue", async (page) => {
      await page.getByRole("link", { name: "New sweep" }).click();
      await write(page, sweepFile("shared", fleet.home));
      await page.getByText("The file is valid.").waitFor();
      await button(page, "Submit").click();
      await heading(page, "shared");
      await button(page, "Pause").waitFor();
      assert.equal(fleet.summary("shared").owner, "sue");
      const [status, message] = await post(page, "DrainWorker", { name: "w1" });
      assert.equal(status, 403);
      assert.match(message, /role submitter may not do this \(DrainWorker\): it needs role admin/);
    });
    await signedIn("viewer", "vic", async (page) => {
      await page.goto(new URL("/sweeps/shared", fleet.url).href);
      await page.getByText("Role viewer can only view").waitFor();
      await picture(page, "viewer");
      assert.equal(await page.getByRole("button", { name: /Pause|Cancel|Retry|Rename/ }).count(), 0);
      assert.equal(await page.getByRole("link", { name: "New sweep" }).count(), 0);
      for (const [method, request] of [
        ["PauseSweep", { sweep: "shared" }],
        ["CancelSweep", { sweep: "shared" }],
        ["Submit", { file: { path: "x.yaml", text: sweepFile("x", fleet.home) } }],
      ]) {
        const [status, message] = await post(page, method, request);
        assert.equal(status, 403, method);
        assert.match(message, /role viewer may not do this/);
      }
    });
    assert.equal(fleet.summary("shared").state, "SWEEP_STATE_ACTIVE");
    const refused = fleet.json("audit").lines.filter((line) => line.who === "vic" && line.outcome !== "ok");
    assert.deepEqual(refused.map((line) => line.what).sort(), ["CancelSweep (dashboard)", "PauseSweep (dashboard)", "Submit (dashboard)"]);
  });
});
