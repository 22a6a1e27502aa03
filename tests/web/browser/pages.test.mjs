// SPDX-License-Identifier: Apache-2.0
// The pages where it is decided what to do next: home, sweeps by a query, compare, tables, failures, queue, workers.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { kRefused, missing, settles, useDashboard } from "./fixture.mjs";

describe("the pages of decisions", { skip: missing() }, () => {
  const dashboard = useDashboard();
  const { on, served } = dashboard;
  const heading = (page, name) => page.getByRole("heading", { level: 1, name }).waitFor();
  const section = (page, name) => page.getByRole("region", { name });

  test("home says what runs, what waits and why, and what failed until it is seen", () =>
    on("/", async (page) => {
      await heading(page, "Home");
      const sweeps = section(page, "Active sweeps");
      await sweeps.getByRole("link", { name: "msf-sharing", exact: true }).waitFor();
      await sweeps.getByText("10/14").waitFor();
      await section(page, "Running").getByRole("link", { name: /^run \d+$/ }).first().waitFor();
      const { waiting } = await served("/overview");
      assert.ok(waiting[0].reason, "the store has a reason");
      await section(page, "Waiting").getByText(waiting[0].reason).first().waitFor();
      const failed = section(page, /Failed since/);
      await failed.getByText("exit code 1: data.name: the folder has no class folders").waitFor();
      await page.keyboard.press("j");
      const opened = () => page.evaluate(() => document.activeElement.closest("main tr")?.querySelector("a") === document.activeElement);
      assert.ok(await opened(), "the keys go through its tables");
      await failed.getByRole("button", { name: "Mark as seen" }).click();
      await failed.getByText("Nothing.").waitFor();
      await page.reload();
      await failed.getByText("Nothing.").waitFor();
      await page.evaluate(() => localStorage.clear());
    }));

  test("home follows what happens", () =>
    on("/", async (page) => {
      await heading(page, "Home");
      await page.evaluate(() => localStorage.setItem("ablate:looked", String(Date.now())));
      await page.reload();
      await section(page, /Failed since/).getByText("Nothing.").waitFor();
      await dashboard.tell("fail");
      await section(page, /Failed since/).getByText("killed by signal 9").waitFor();
      await section(page, /Failed since/)
        .getByRole("link", { name: "All failures of msf-sharing" })
        .click();
      await heading(page, "Failures");
      assert.equal(new URL(page.url()).pathname, "/sweeps/msf-sharing/failures");
      await page.getByText("killed by signal 9").waitFor();
      await section(page, "By setting").getByText("model.attention.share").first().waitFor();
      await page.getByRole("link", { name: /seed \d+$/ }).first().click();
      await heading(page, /^Run \d+/);
    }));

  test("sweeps are found by a query that the address keeps", () =>
    on("/sweeps", async (page) => {
      const names = () => page.locator("main tbody th[scope=row]").allInnerTexts();
      await page.getByRole("link", { name: "msf-sharing" }).waitFor();
      await page.keyboard.press("/");
      await page.keyboard.type("acc>60 failed=0");
      await settles(async () => assert.equal(new URL(page.url()).searchParams.get("q"), "acc>60 failed=0"));
      await page.keyboard.press("Escape");
      await page.getByLabel("Find sweeps").fill("name:group* failed>0");
      await settles(async () => assert.deepEqual(await names(), ["groups"]));
      await page.reload();
      await settles(async () => assert.deepEqual(await names(), ["groups"]));
      await page.getByRole("group", { name: "Common queries" }).getByRole("link", { name: "All" }).click();
      await settles(async () => assert.deepEqual(await names(), ["msf-sharing", "groups"]));
      await page.getByRole("columnheader", { name: "Sweep" }).getByRole("link").click();
      await settles(async () => assert.deepEqual(await names(), ["groups", "msf-sharing"]));
      await page.goBack();
      await settles(async () => assert.deepEqual(await names(), ["msf-sharing", "groups"]));
    }));

  test("a mistake in a query is said in place, with the nearest key, and what was found stays", () =>
    on(
      "/sweeps",
      async (page) => {
        await page.getByRole("link", { name: "msf-sharing" }).waitFor();
        await page.getByLabel("Find sweeps").fill("stat:running");
        await page.getByText("unknown key 'stat'; did you mean 'state'?").waitFor();
        assert.equal(await page.getByLabel("Find sweeps").getAttribute("aria-invalid"), "true");
        assert.equal(await page.getByRole("link", { name: "msf-sharing" }).count(), 1);
        await page.getByLabel("Find sweeps").fill('"<img src=x onerror=window.hostile=1>"');
        await page.getByText("No sweep matches.").waitFor();
        assert.equal(await page.evaluate(() => window.hostile), undefined);
      },
      { expected: kRefused },
    ));

  test("a row is compared with another one, and the address says which", () =>
    on("/sweeps/msf-sharing?row=orig", async (page) => {
      await page.getByRole("link", { name: "Compare with another row" }).click();
      await page.getByRole("heading", { name: "Compare msf-sharing/orig with" }).waitFor();
      await page.getByRole("link", { name: "a MSF, Simplest" }).click();
      const address = new URL(page.url());
      assert.equal(address.searchParams.get("a"), "msf-sharing/orig");
      assert.equal(address.searchParams.get("b"), "msf-sharing/a");
      const compared = await served("/compare?a=msf-sharing/orig&b=msf-sharing/a");
      const row = page.getByRole("row").filter({ hasText: "last val/top1 (%)" });
      await row.getByText(compared.metrics[0].difference_text.replace("-", "−"), { exact: true }).waitFor();
      await section(page, "Configuration").getByText("model.attention.share").first().waitFor();
      await page.getByRole("img", { name: /Line chart of val\/top1/ }).waitFor();
      await page.getByRole("button", { name: "Swap A and B" }).click();
      await page.waitForURL(/a=msf-sharing%2Fa&b=msf-sharing%2Forig/);
      await page.goBack();
      await row.getByText(compared.metrics[0].difference_text.replace("-", "−"), { exact: true }).waitFor();
    }));

  test("runs of different lengths, and whole sweeps, are compared with a note", async () => {
    const { workers } = await served("/workers");
    const running = workers.flatMap((worker) => worker.runs)[0];
    await on(`/runs/${running}`, async (page) => {
      await page.getByRole("link", { name: "Compare with another run" }).click();
      await page.getByRole("link", { name: /^run 4, / }).click();
      await page.getByText(/last values are from different steps, A at \d+ and B at \d+/).first().waitFor();
    });
    await on("/compare?a=msf-sharing&b=groups", async (page) => {
      await page.getByRole("heading", { name: "Rows in both" }).waitFor();
      await page.getByRole("row").filter({ hasText: "Transformer" }).first().waitFor();
    });
    await on(
      "/compare?a=msf-sharin&b=groups",
      async (page) => {
        await page.getByRole("alert").getByText("msf-sharing").waitFor();
      },
      { expected: kRefused },
    );
  });

  test("of sweeps without a common row nothing is said of rows in both", async () => {
    await dashboard.tell("factors study");
    await on("/compare?a=msf-sharing&b=study", async (page) => {
      await page.getByText("The sweeps have no rows in common.").waitFor();
      assert.equal(await page.getByText("Rows in both have the same configuration").count(), 0);
    });
  });

  test("of two sweeps the mean curves of the best rows are there, and those of others on demand", async () => {
    await dashboard.tell("crowd first 6");
    await dashboard.tell("crowd second 6");
    await on("/compare?a=first&b=second", async (page, asked) => {
      const curves = section(page, "Mean curves");
      const titles = () => curves.locator(".chart-title").allTextContents();
      await settles(async () => assert.deepEqual(await titles(), [0, 1, 2, 3].map((i) => `row-${i} number ${i}`)));
      await curves.getByRole("img", { name: /^Line chart of row-0/ }).waitFor();
      await curves.getByText("The curves do not cross.").first().waitFor();
      await curves.getByText("The best 4 of 6 rows with values on both sides.").waitFor();
      const read = asked.filter(({ searchParams }) => searchParams.has("max_points"));
      assert.equal(read.length, 4, "a read for each");
      assert.ok(read.every(({ searchParams }) => searchParams.get("metric") === "val/loss"));
      await curves.getByRole("link", { name: "Show 2 more rows" }).click();
      await settles(async () => assert.equal((await titles()).length, 6));
      await curves.getByRole("link", { name: "Compare row-5 number 5 alone" }).click();
      await page.waitForURL(/a=first%2Frow-5&b=second%2Frow-5/);
      await page.goBack();
      await settles(async () => assert.equal((await titles()).length, 6));
    });
  });

  test("tables of the papers say what is stored and what trains the others", async () => {
    await dashboard.tell("submit msf-table-1-cifar");
    await on("/tables", async (page) => {
      await heading(page, "Tables of the papers");
      await page.getByText("1 of 31 tables stored").waitFor();
      await page.getByRole("link", { name: "table-2", exact: true }).first().waitFor();
      await page
        .getByRole("row")
        .filter({ hasText: "Projection sharing in the MSF-transformer" })
        .getByRole("link", { name: "table-1", exact: true })
        .click();
      const one = section(page, /^msf\/table-1/);
      await one.getByText("ablate watch msf-table-1-cifar").waitFor();
      await one.getByRole("row").filter({ hasText: "Transformer" }).getByText("78.55").waitFor();
    });
    await on("/tables?table=xcit/table-3", async (page) => {
      await page.getByText("ablate reproduce xcit/table-3 --scale cifar").waitFor();
    });
    await on("/tables?table=msf/table-4", async (page) => {
      await page.getByText("ablate reproduce msf/table-4 --scale cifar").waitFor();
      await page.getByText("Read only:").waitFor(); // of a store alone nothing can be submitted
    });
  });

  test("the queue has an order, with the reasons", () =>
    on("/queue", async (page) => {
      await heading(page, "Queue");
      const queue = await served("/queue");
      await section(page, "Sweeps, in order").getByText(queue.sweeps[0].reasons[0].reason).first().waitFor();
      const rows = section(page, "Next trials").locator("tbody tr");
      await settles(async () => assert.equal(await rows.count(), queue.next.length));
    }));

  test("workers say what runs in each slot", () =>
    on("/workers", async (page) => {
      const line = page.getByRole("row").filter({ hasText: "cellar-3" });
      await line.getByText("gone").waitFor();
      await line.getByText("free").waitFor();
    }));

  test("workers say how busy they are, by the newest sample of each run", async () => {
    const { workers } = await served("/workers");
    const worker = workers.find(({ runs }) => runs.length > 0);
    for (const run of worker.runs) await dashboard.tell(`sample ${run} 0 10`);
    await on("/workers", (page) =>
      page
        .getByRole("row")
        .filter({ hasText: worker.name })
        .getByText(/CPU \d+\.\d cores/)
        .waitFor(),
    );
  });

  test("the design page is reached from the list of keys, and every contrast is enough, in both themes", () =>
    on("/", async (page) => {
      await heading(page, "Home");
      await page.keyboard.press("?");
      await page.getByRole("link", { name: "What these pages are made of" }).click();
      await heading(page, "Design");
      await page.getByRole("dialog").waitFor({ state: "detached" });
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme });
        const ground = page.getByRole("listitem").filter({ hasText: "--ground" });
        await ground.getByText(colorScheme === "light" ? "#f6f7f8" : "#101316").waitFor();
        assert.ok((await page.locator("table tbody tr .pair").count()) > 30);
        assert.deepEqual(await page.getByText("too low").allTextContents(), []);
      }
      await page.getByRole("button", { name: "Fails" }).click();
      await page.locator(".action-error").getByText("the scheduler is starting").waitFor();
    }));

  test("keys lead to the new pages, and an address that is nearly one of them is known", () =>
    on(
      "/",
      async (page) => {
        await heading(page, "Home");
        for (const [key, name] of [
          ["t", "Tables of the papers"],
          ["q", "Queue"],
          ["s", "Sweeps"],
          ["e", "Settings"],
          ["h", "Home"],
        ]) {
          await page.keyboard.press("g");
          await page.keyboard.press(key);
          await heading(page, name);
        }
        await page.goto(dashboard.at("/tabels").href);
        await page.getByText("Did you mean").getByRole("link", { name: "/tables" }).click();
        await heading(page, "Tables of the papers");
        await page.goto(dashboard.at("/runs/abc").href);
        await page.getByText("Expected /runs/17, with the run's number.").waitFor();
        assert.equal(await page.getByText("Did you mean").count(), 0, "not the address that it is");
      },
      { expected: kRefused },
    ));
});
