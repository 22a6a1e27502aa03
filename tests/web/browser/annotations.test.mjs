// SPDX-License-Identifier: Apache-2.0
// Tags, pins, notes and the archive of sweeps, with a real scheduler. SCREENSHOTS=folder keeps pictures.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { button, heading, kRefused, missing, picture, said, settles, startBrowser, visit } from "./fixture.mjs";
import { missingPrograms, startFleet, sweepFile } from "./fleet.mjs";

const kSkip = missing() || missingPrograms();

const kNotes = `# What we saw

Groups above 8 **diverge**, see [the paper](https://example.org/paper) and [our table](/sweeps/first).

| groups | top-1 |
|--------|------:|
| 8      | 79.5  |

- [x] seed 0
- [ ] seed 1

<script>document.title = "hacked"</script> <img src=x onerror="document.title='hacked'">
[do not](javascript:alert(1)) ![a picture](https://example.org/x.png)
`;

const listed = (page) => page.locator("main tbody th .name").allInnerTexts();

describe("annotations", { skip: kSkip }, () => {
  let fleet;
  let browser;
  before(async () => {
    [fleet, browser] = await Promise.all([startFleet(), startBrowser()]);
    for (const name of ["first", "second", "third"]) {
      const file = join(fleet.home, `${name}.yaml`);
      writeFileSync(file, sweepFile(name, fleet.home));
      fleet.ablate("submit", file);
    }
    fleet.touch("mended");
    fleet.touch("go");
    await settles(async () => assert.equal(fleet.summary("first").state, "SWEEP_STATE_COMPLETED"));
  });
  after(async () => {
    await browser?.close();
    await fleet?.stop();
  });

  const on = (path, steps, expected) => visit(browser, new URL(path, fleet.url), steps, { expected });

  test("a pinned sweep is the first of the list, in every tab", () =>
    on("/sweeps", async (page) => {
      await settles(async () => assert.deepEqual(await listed(page), ["third", "second", "first"]));
      const other = await page.context().newPage();
      await other.goto(page.url());
      await settles(async () => assert.equal((await listed(other)).length, 3));
      await button(page, "Pin first").click();
      for (const tab of [page, other]) await settles(async () => assert.deepEqual(await listed(tab), ["first", "third", "second"]));
      assert.equal(await button(page, "Pin first").getAttribute("aria-pressed"), "true");
      assert.equal(fleet.summary("first").pinned, true);
      await other.close();
    }));

  test("the keys open a sweep, past its pin", () =>
    on("/sweeps", async (page) => {
      await settles(async () => assert.equal((await listed(page)).length, 3));
      const [, second] = await listed(page);
      await page.keyboard.press("j");
      await page.keyboard.press("j");
      await page.keyboard.press("Enter");
      await heading(page, second);
      assert.equal(fleet.summary(second).pinned ?? false, false);
    }));

  test("tags are set on the sweep's page, found by a click, and taken back", () =>
    on("/sweeps/second", async (page) => {
      await button(page, "Tags…").click();
      const dialog = page.getByRole("dialog", { name: "Tags of second" });
      await dialog.getByLabel("Tags").fill("paper  msf/table-1, paper");
      await page.keyboard.press("Enter");
      await said(page, "second: tags msf/table-1, paper.").waitFor();
      await page.getByRole("link", { name: "msf/table-1", exact: true }).click();
      await page.getByRole("heading", { level: 1, name: "Sweeps", exact: true }).waitFor();
      assert.equal(new URL(page.url()).searchParams.get("q"), "tag:msf/table-1");
      await settles(async () => assert.deepEqual(await listed(page), ["second"]));
      await picture(page, "tags");
      await page.goBack();
      await said(page, "second: tags").getByRole("button", { name: "Undo" }).click();
      await said(page, "second has no tags.").waitFor();
      assert.deepEqual(fleet.summary("second").tags, []);
    }));

  test("a tag that no sweep may have is refused beside what was written", () =>
    on("/sweeps/second", async (page) => {
      await button(page, "Tags…").click();
      const dialog = page.getByRole("dialog", { name: "Tags of second" });
      await dialog.getByLabel("Tags").fill("a".repeat(51));
      await page.keyboard.press("Enter");
      await dialog.getByRole("alert").filter({ hasText: "at most 50 letters" }).waitFor();
      assert.equal(await dialog.getByLabel("Tags").inputValue(), "a".repeat(51));
    }, kRefused));

  test("notes are Markdown, and nothing of them is a script, a picture or an address that runs", () =>
    on("/sweeps/first", async (page) => {
      await button(page, "Add notes…").click();
      const dialog = page.getByRole("dialog", { name: "Notes on first" });
      await dialog.getByLabel("Markdown").fill(kNotes);
      await dialog.getByRole("button", { name: "Preview" }).click();
      await dialog.getByRole("heading", { name: "What we saw" }).waitFor();
      await dialog.getByRole("button", { name: "Save" }).click();
      await said(page, "Saved the notes of first.").waitFor();
      const notes = page.getByRole("region", { name: "Notes" });
      await notes.getByRole("heading", { name: "What we saw", level: 3 }).waitFor();
      assert.equal(await notes.locator("strong").innerText(), "diverge");
      assert.equal(await notes.getByRole("columnheader", { name: "top-1" }).count(), 1);
      assert.equal(await notes.locator("script, img, iframe, style").count(), 0);
      assert.equal(await notes.locator("a[href^='javascript']").count(), 0);
      assert.deepEqual(await notes.locator("a").allInnerTexts(), ["the paper", "our table", "a picture"]);
      assert.match(await notes.innerText(), /<script>document.title = "hacked"<\/script>/);
      assert.doesNotMatch(await page.title(), /hacked/);
      assert.equal(fleet.json("show", "first").notes, kNotes, "as they were written");
      await picture(page, "notes");
    }));

  test("what was written is still there after Escape, until it is discarded", () =>
    on("/sweeps/second", async (page) => {
      await button(page, "Add notes…").click();
      const dialog = page.getByRole("dialog", { name: "Notes on second" });
      const text = dialog.getByLabel("Markdown");
      await text.fill("half a thought");
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
      await button(page, "Add notes…").click();
      assert.equal(await text.inputValue(), "half a thought");
      await dialog.getByRole("button", { name: "Discard changes" }).click();
      assert.equal(await text.inputValue(), "");
      assert.equal(await dialog.getByRole("button", { name: "Discard changes" }).count(), 0);
    }));

  test("what somebody else wrote meanwhile is not lost without a word", () =>
    on("/sweeps/third", async (page) => {
      await button(page, "Add notes…").click();
      const dialog = page.getByRole("dialog", { name: "Notes on third" });
      await dialog.getByLabel("Markdown").fill("mine");
      const file = join(fleet.home, "theirs.md");
      writeFileSync(file, "theirs");
      fleet.ablate("annotate", "third", "--notes", file);
      await page.getByRole("region", { name: "Notes", includeHidden: true }).filter({ hasText: "theirs" }).waitFor();
      await dialog.getByRole("button", { name: "Save" }).click();
      await dialog.getByRole("alert").filter({ hasText: "Somebody else has changed these notes" }).waitFor();
      assert.equal(fleet.json("show", "third").notes, "theirs");
      assert.equal(await dialog.getByLabel("Markdown").inputValue(), "mine");
      await dialog.getByRole("button", { name: "Save" }).click();
      await said(page, "Saved the notes of third.").waitFor();
      assert.equal(fleet.json("show", "third").notes, "mine");
      await said(page, "Saved the notes").getByRole("button", { name: "Undo" }).click();
      await said(page, "are as they were").waitFor();
      assert.equal(fleet.json("show", "third").notes, "theirs");
    }, kRefused));

  test("an archived sweep is left out, counted, and found where it is asked for", () =>
    on("/sweeps/first", async (page) => {
      await button(page, "Archive").click();
      await said(page, "Archived first").waitFor();
      await button(page, "Unarchive").first().waitFor();
      await page.getByRole("link", { name: "Sweeps", exact: true }).first().click();
      await settles(async () => assert.deepEqual(await listed(page), ["third", "second"]));
      await page.getByText("1 archived sweep").waitFor();
      await page.getByRole("link", { name: "show", exact: true }).click();
      await settles(async () => assert.deepEqual(await listed(page), ["first"]));
      await picture(page, "archived");
      fleet.ablate("rerun", "first", "a");
      await settles(async () => assert.deepEqual(await listed(page), []));
      assert.equal(fleet.summary("first").archived, false, "what trains again is not away");
    }));
});
