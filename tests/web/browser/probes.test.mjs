// SPDX-License-Identifier: Apache-2.0
// What probes found in a run's model, alone and beside another run's; when the attempts of its trial were.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { kRefused, missing, settles, useDashboard } from "./fixture.mjs";

describe("what probes found", { skip: missing() }, () => {
  const [kProbed, kOther, kNotProbed] = [4, 5, 6]; // completed runs
  const dashboard = useDashboard({
    async ready({ tell }) {
      await tell(`probe ${kProbed}`);
      await tell(`probe ${kOther}`);
    },
  });
  const { on, served } = dashboard;
  const probe = (page, name) => page.getByRole("article", { name: `Probe ${name}`, exact: true });
  const open = (page, name) => probe(page, name).getByText("Charts and pictures").click();
  const named = (asked) => asked.filter(({ pathname, searchParams }) => /probes$/.test(pathname) && searchParams.has("name"));

  test("values, settings and step are there at once; what is missing is said in words", () =>
    on(`/runs/${kProbed}`, async (page, asked) => {
      const norms = probe(page, "feature-norms");
      await norms.getByText("images=64").waitFor();
      await norms.getByText("at step 600").waitFor();
      assert.deepEqual(await norms.locator("dd").allInnerTexts(), ["6.5000", "11.50", "11.50"]);
      await probe(page, "attention(images=2)").getByText("1.7900 nats").waitFor();
      await probe(page, "code-norms").getByText("Nothing found: the model has no codes").waitFor();
      assert.equal(await probe(page, "code-norms").getByText("Charts and pictures").count(), 0);
      assert.deepEqual(named(asked), [], "arrays and pictures were not asked for");
      await page.getByRole("img", { name: /Line chart of top1/ }).waitFor();
      assert.equal(await page.getByRole("img", { name: /Line chart of probe:/ }).count(), 0, "a single point is no curve");
    }));

  test("norms are a line by layer, and a table", () =>
    on(`/runs/${kProbed}`, async (page, asked) => {
      await open(page, "feature-norms");
      const norms = probe(page, "feature-norms");
      await norms.getByRole("img", { name: /^Line chart of norm by layer, embedding to 4: from 6\.5000 to 11\.50/ }).waitFor();
      assert.deepEqual(
        named(asked).map((address) => address.searchParams.get("name")),
        ["feature-norms"],
        "one probe was read whole",
      );
      await norms.getByRole("button", { name: "Show as table: norm" }).click();
      const table = norms.getByRole("region", { name: "norm of feature-norms as a table" });
      assert.deepEqual(await table.locator("td").allInnerTexts(), ["6.5000", "7.7500", "9", "10.25", "11.50"]);
    }));

  test("similarities are a map with its numbers, of the layer and head that are chosen", () =>
    on(`/runs/${kProbed}`, async (page) => {
      await open(page, "subspace-similarity");
      const similar = probe(page, "subspace-similarity");
      const map = similar.getByRole("table", { name: /^similarity/ });
      const cell = map.getByRole("row").filter({ hasText: "query" }).last().getByRole("cell").nth(1);
      await map.waitFor();
      assert.equal(await cell.innerText(), "0.27");
      await similar.getByLabel("layer").selectOption("4");
      await settles(async () => assert.equal(await cell.innerText(), "0.42"));
      assert.ok((await map.innerText()).includes("–"), "there is none of probe and weight");
    }));

  test("a picture is enlarged by keyboard, and downloaded; a large map is a picture too", () =>
    on(`/runs/${kProbed}`, async (page) => {
      const name = "attention(images=2)";
      await open(page, name);
      const attention = probe(page, name);
      await attention.getByRole("img", { name: /^Heat map of map, image 0, head 1, 16 by 16/ }).waitFor();
      const image = attention.locator("button img");
      await settles(async () => assert.deepEqual(await image.evaluate((e) => [e.naturalWidth, e.naturalHeight]), [64, 32]));
      assert.match(await image.getAttribute("alt"), /what each head attends to/);
      await attention.getByRole("button", { name: /^Enlarge maps/ }).press("Enter");
      const dialog = page.getByRole("dialog", { name: "maps, enlarged" });
      await dialog.waitFor();
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "hidden" });
      const [saved] = await Promise.all([
        page.waitForEvent("download"),
        attention.getByRole("link", { name: `Download maps of run ${kProbed}` }).click(),
      ]);
      assert.equal(saved.suggestedFilename(), `run-${kProbed}-attention-images-2--maps.png`);
      const { probes } = await served(`/runs/${kProbed}/probes?name=${encodeURIComponent(name)}`);
      assert.equal(readFileSync(await saved.path()).toString("base64"), probes[0].pictures[0].png);
    }));

  test("two runs are compared by what probes found in both", async () => {
    await on(`/compare?a=${kProbed}&b=${kOther}`, async (page, asked) => {
      const section = page.getByRole("region", { name: "Probes" });
      const row = section.getByRole("row").filter({ hasText: "entropy" });
      await row.waitFor();
      assert.deepEqual(await row.getByRole("cell").allInnerTexts(), ["1.7900 nats", "1.7800 nats", "−0.0100 nats"]);
      await section.getByText("code-norms: nothing found in A and B").waitFor();
      assert.deepEqual(named(asked), [], "arrays and pictures were not asked for");
      await section.getByText("Charts and pictures of feature-norms").click();
      await settles(async () => assert.equal(await section.getByRole("img", { name: /^Line chart of norm/ }).count(), 2));
      assert.equal(named(asked).length, 2);
    });
    await on(`/compare?a=${kProbed}&b=${kNotProbed}`, async (page, asked) => {
      await page.getByRole("heading", { name: "Metrics" }).waitFor();
      await settles(async () => assert.equal(asked.filter(({ pathname }) => /probes$/.test(pathname)).length, 2));
      assert.equal(await page.getByRole("heading", { name: "Probes" }).count(), 0, "there is nothing to compare");
    });
  });

  test("where no probe is stored, one line says what runs one", async () => {
    await on(`/runs/${kNotProbed}`, async (page) => {
      await page.getByText(`ablate probe ${kNotProbed} NAME`).waitFor();
      assert.equal(await page.getByRole("heading", { name: "Probes" }).count(), 0);
    });
  });

  test("what cannot be read is said in the server's words", () =>
    on(
      `/runs/${kProbed}`,
      async (page) => {
        await page.route(/\/probes\?name=/, (route) =>
          route.fulfill({ status: 404, json: { code: "NOT_FOUND", message: "run 4 has no result of that probe" } }),
        );
        await open(page, "feature-norms");
        await probe(page, "feature-norms").getByRole("alert").getByText("run 4 has no result of that probe").waitFor();
      },
      { expected: kRefused },
    ));
});

describe("the time line", { skip: missing() }, () => {
  const dashboard = useDashboard();
  const { on, served } = dashboard;
  const section = (page) => page.getByRole("region", { name: "Time line" });
  const attempts = async () => (await served("/runs?sweep=msf-sharing")).runs.filter(({ trial }, _, all) => all.filter((run) => run.trial === trial).length > 1);

  test("attempts are bars on one axis, with worker, state and the step that they resumed from", async () => {
    const [resumed, lost] = await attempts();
    await on(`/runs/${lost.id}`, async (page) => {
      const line = section(page);
      await line.getByRole("img", { name: /^Attempt 1: leased to cellar-3 .*checkpoint at step 300 about .*lost at step 300/ }).waitFor();
      await line.getByRole("img", { name: /^Attempt 2: leased to anvil-1 .*resumed from step 300 .*at step \d+ now/ }).waitFor();
      await line.getByText("checkpoint of this run").waitFor();
      const [first, second] = await line.locator(".time-bar").evaluateAll((bars) => bars.map((bar) => bar.getBoundingClientRect().toJSON()));
      assert.ok(second.left >= first.right - 1, "the second attempt is after the first");
      await line.getByRole("link", { name: `run ${resumed.id}` }).click();
      await page.getByRole("heading", { level: 1, name: `Run ${resumed.id}` }).waitFor();
    });
  });

  test("the same is a table, by local time", async () => {
    const [, lost] = await attempts();
    const timeZone = "Asia/Kathmandu";
    await on(
      `/runs/${lost.id}`,
      async (page) => {
        await section(page).getByRole("button", { name: "Show as table" }).click();
        const rows = section(page).getByRole("table").locator("tbody tr");
        await rows.filter({ hasText: "checkpoint at step 300" }).getByText("about").waitFor();
        await rows.filter({ hasText: "resumed from step 300" }).waitFor();
        const ended = rows.filter({ hasText: "lost at step 300: worker cellar-3 was not heard for 30 s" });
        const time = new Date(lost.ended).toLocaleString("en-GB", {
          ...{ timeZone, day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" },
        });
        assert.equal(await ended.locator("time").innerText(), time);
      },
      { timezoneId: timeZone },
    );
  });
});
