// SPDX-License-Identifier: Apache-2.0
// A sweep's file: its revisions, what differs between two of them, and taking it along. SCREENSHOTS=folder keeps pictures.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { missing, settles, useDashboard } from "./fixture.mjs";

const kScreenshots = process.env.SCREENSHOTS;
const kSweep = "/sweeps/msf-sharing";
const clipboard = { permissions: ["clipboard-read", "clipboard-write"] };

async function picture(page, name) {
  if (!kScreenshots) return;
  mkdirSync(kScreenshots, { recursive: true });
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await page.locator("#file").screenshot({ path: `${kScreenshots}/${name}-${colorScheme}.png`, animations: "disabled" });
  }
}

describe("a sweep's file", { skip: missing() }, () => {
  const dashboard = useDashboard({
    ready: async ({ tell }) => {
      await tell("submit other");
      await tell("extend msf-sharing");
    },
    shown: "details.source",
  });
  const { on, served } = dashboard;
  const text = async (revision) => (await served(`${kSweep}/text?revision=${revision}`)).text;
  const difference = (page) => page.locator(".diff");
  const lines = (page, kind) => difference(page).locator(`tr.diff-${kind} .diff-text`).allInnerTexts();
  const parameter = (page) => new URL(page.url()).searchParams.get("file");

  test("lists who extended it and when, and what differs, in the address", () =>
    on(kSweep, async (page) => {
      const chunks = [];
      page.on("request", (request) => chunks.push(request.url()));
      await page.locator("#file > summary").click();
      const listed = page.getByRole("table", { name: "Revisions of the file, newest first" });
      await listed.waitFor();
      assert.ok(chunks.some((url) => url.includes("/assets/revisions-")), "it is read when it is opened");
      assert.deepEqual(await listed.getByRole("rowheader").allInnerTexts(), ["3", "2", "1"]);
      assert.match(await listed.getByRole("row").nth(1).innerText(), /bob[\s\S]*row a: new[\s\S]*2 more[\s\S]*8/);
      assert.match(await listed.getByRole("row").nth(3).innerText(), /local[\s\S]*as it was submitted/);
      await page.getByRole("link", { name: "Difference from revision 1" }).click();
      await difference(page).waitFor();
      assert.equal(parameter(page), "1..2");
      const [[removed], [added]] = [await lines(page, "removed"), await lines(page, "added")];
      assert.equal(added, removed.replace('label: "', 'label: "other '));
      assert.ok((await text(1)).includes(`${removed}\n`) && (await text(2)).includes(`${added}\n`));
      assert.equal((await difference(page).locator("ins").allInnerTexts()).join("").trim(), "other");
      assert.deepEqual(await difference(page).locator(".diff-sign").allInnerTexts().then((all) => all.join("").replace(/[\s\u00a0]/g, "")), "−removed+added");
      await picture(page, "difference");
      await page.goBack();
      await page.getByLabel("Sweep file, revision 3").waitFor();
      assert.equal(parameter(page), null);
    }),
  );

  test("any two revisions, and what is folded opens", () =>
    on(`${kSweep}?file=1..3`, async (page) => {
      await difference(page).waitFor();
      const shown = (await lines(page, "added")).length;
      assert.ok(shown <= 400, "of ten thousand lines the first are shown");
      await page.getByRole("button", { name: /^Show 1\D?000 of/ }).click();
      await settles(async () => assert.equal((await lines(page, "added")).length, shown + 1000));
      assert.ok(await page.evaluate(() => document.activeElement?.tagName === "TR"), "the focus is at what was opened");
      await page.getByLabel("Compared with").selectOption("2");
      await page.waitForURL(/file=2\.\.3/);
      await settles(async () => assert.equal((await lines(page, "removed")).length, 0));
      const rows = () => difference(page).locator("tr:has(.diff-number)").count();
      const fold = page.getByRole("button", { name: /^Show \d+ unchanged lines$/ });
      const folded = Number(/\d+/.exec(await fold.innerText())[0]); // waits for the difference, of which there is none at first
      const before = await rows();
      await fold.click();
      await settles(async () => assert.equal(await rows(), before + folded));
      await page.getByLabel("Compared with").selectOption("nothing");
      await page.waitForURL(/file=3(?:#|$)/);
      await page.locator("#file select").first().selectOption("2");
      await settles(async () => assert.equal(await page.getByLabel("Sweep file, revision 2").textContent(), await text(2)));
    }),
  );

  test("each revision is copied and downloaded to the byte", () =>
    on(
      `${kSweep}?file=3`,
      async (page) => {
        await page.getByRole("button", { name: "Copy revision 2" }).click();
        await page.getByRole("status").filter({ hasText: "Copied." }).waitFor();
        assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await text(2));
        for (const [revision, name] of [
          [1, /\.revision-1\.yaml$/],
          [3, /^[^.]+\.yaml$/],
        ]) {
          const [download] = await Promise.all([
            page.waitForEvent("download"),
            page.getByRole("button", { name: `Download revision ${revision}` }).click(),
          ]);
          assert.match(download.suggestedFilename(), name);
          assert.equal(readFileSync(await download.path(), "utf8"), await text(revision));
        }
      },
      clipboard,
    ),
  );

  test("of a sweep that was never extended is there to take", () =>
    on(
      "/sweeps/other",
      async (page) => {
        await page.locator("#file > summary").click();
        await page.getByRole("button", { name: "Copy", exact: true }).click();
        await page.getByRole("status").filter({ hasText: "Copied." }).waitFor();
        const { text: file } = await served("/sweeps/other");
        assert.equal(await page.evaluate(() => navigator.clipboard.readText()), file);
        assert.equal(await page.locator("#file pre").textContent(), file);
        assert.equal(await page.getByRole("table", { name: /^Revisions/ }).count(), 0);
      },
      clipboard,
    ),
  );

  test("what the address names and there is not, is not shown", () =>
    on(`${kSweep}?file=1..9`, async (page) => {
      await page.locator("#file > summary").click();
      await page.getByLabel("Sweep file, revision 3").waitFor();
    }),
  );
});
