// SPDX-License-Identifier: Apache-2.0
// Every page, light and dark, wide and on a phone, as axe-core judges it by WCAG 2.2 AA; trained.test.mjs does so with real results. And
// the form by which people sign in, which is a page of the server's own.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { violationsOf } from "./axe.mjs";
import { missing, openPage, startBrowser, startDashboard, useDashboard } from "./fixture.mjs";

const kSizes = { wide: { width: 1360, height: 900 }, phone: { width: 390, height: 844 } };

describe("the pages for everybody", { skip: missing() }, () => {
  let paths;
  const dashboard = useDashboard({
    async ready({ tell, served }) {
      await tell("incomplete unfilled");
      await tell("fail");
      await tell("probe 4");
      await tell("probe 5");
      await tell("extend msf-sharing");
      await tell("diverge nan");
      await tell("factors study");
      const { runs } = await served("/runs?limit=1");
      paths = [
        "/",
        "/sweeps",
        "/sweeps?q=stat:x",
        "/sweeps/msf-sharing",
        "/sweeps/msf-sharing?row=msf&column=acc",
        "/sweeps/msf-sharing?chart=bars&chosen=a&brush=range~acc~80~90",
        "/sweeps/msf-sharing?chart=parallel",
        "/sweeps/msf-sharing?chart=effects",
        "/sweeps/msf-sharing?file=3", // its revisions, and the file as it is
        "/sweeps/msf-sharing?file=1..2",
        "/sweeps/msf-sharing?file=1..3", // of thousands of lines, most of them folded
        "/sweeps/study?pivot=kernel",
        "/sweeps/msf-sharing/failures",
        "/sweeps/unfilled",
        `/runs/${runs[0].id}`,
        "/runs/4", // with probes, all of them open
        "/compare",
        "/compare?a=msf-sharing/orig&b=msf-sharing/msf",
        "/compare?a=4&b=5",
        "/compare?a=msf-sharing&b=nan",
        "/tables",
        "/queue",
        "/workers",
        "/submit",
        "/settings",
        "/design",
        "/nothing/of/the/kind",
      ];
    },
  });

  for (const colorScheme of ["light", "dark"])
    for (const [size, viewport] of Object.entries(kSizes))
      test(`${colorScheme}, ${size}`, async () => {
        const { page } = await openPage(dashboard.browser, { colorScheme, viewport, reducedMotion: "reduce" });
        const found = [];
        for (const path of paths) {
          await page.goto(dashboard.at(path).href);
          await page.getByRole("heading", { level: 1 }).waitFor();
          // the design page shows what is loading on purpose
          if (path === "/design") await page.getByRole("heading", { name: "States" }).waitFor();
          else await page.waitForFunction(() => !document.querySelector(".skeleton"));
          await openDetails(page);
          found.push(...(await violationsOf(page, path)));
          if ((await showTables(page)) > 0) found.push(...(await violationsOf(page, `${path} as tables`)));
        }
        assert.deepEqual(found, []);
        await page.context().close();
      });

  for (const colorScheme of ["light", "dark"])
    for (const [size, viewport] of Object.entries(kSizes))
      test(`an admin's settings: ${colorScheme}, ${size}`, async () => {
        const { page } = await openPage(dashboard.browser, { colorScheme, viewport, reducedMotion: "reduce" });
        await asAdmin(page);
        await page.goto(dashboard.at("/settings?ended=1").href);
        await page.locator("section[aria-labelledby=tokens]").getByRole("row").filter({ hasText: "revoked" }).waitFor();
        const found = await violationsOf(page, "lists");
        await page.getByRole("button", { name: "Create token…" }).click();
        const name = page.getByRole("dialog").getByLabel("Name");
        await name.fill("vic");
        found.push(...(await violationsOf(page, "dialog")));
        await name.press("Enter");
        await page.locator(".secret").waitFor();
        found.push(...(await violationsOf(page, "secret")));
        assert.deepEqual(found, []);
        await page.context().close();
      });
});

describe("signing in for everybody", { skip: missing() }, () => {
  let browser;
  let dashboard;
  before(async () => {
    browser = await startBrowser();
    dashboard = await startDashboard("0", "--sign-in");
  });
  after(async () => {
    await browser?.close();
    await dashboard?.stop();
  });

  for (const colorScheme of ["light", "dark"])
    for (const [size, viewport] of Object.entries(kSizes))
      test(`${colorScheme}, ${size}`, async () => {
        const { page } = await openPage(browser, { colorScheme, viewport, ignoreHTTPSErrors: true });
        await page.goto(new URL("/sign-in?to=/workers", dashboard.url).href);
        await page.getByRole("heading", { level: 1 }).waitFor();
        const found = await violationsOf(page, "the form");
        await page.getByLabel("Token").fill("abl_nobody");
        await page.keyboard.press("Enter");
        await page.getByRole("alert").waitFor();
        found.push(...(await violationsOf(page, "refused")));
        assert.deepEqual(found, []);
        await page.context().close();
      });
});

/** What probes found is drawn when it is opened. */
async function openDetails(page) {
  const closed = page.locator(".probe-whole:not([open]) > summary");
  while ((await closed.count()) > 0) await closed.first().click();
  await page.waitForFunction(() => !document.querySelector(".probe-whole .skeleton"));
}

/** What is drawn is a table as well: shows them, and says how many. */
async function showTables(page) {
  const shown = page.locator("section[aria-labelledby=probes], section[aria-labelledby=time-line]");
  const buttons = await shown.getByRole("button", { name: /^Show as table/ }).all();
  for (const button of buttons.reverse()) await button.click(); // the last first, as each goes when it is clicked
  return buttons.length;
}

/** Answers as a scheduler would answer an admin: the fixture has none. */
async function asAdmin(page) {
  const time = new Date(Date.now() - 86400_000).toISOString();
  const token = { id: "3f2a90c1d4e5", role: "TOKEN_ROLE_ADMIN", name: "ada", made_by: "local", created: time, why_not: "" };
  const answers = {
    whoami: {
      ...{ name: "ada", role: "TOKEN_ROLE_ADMIN", token: { id: token.id }, dashboard: "", read_only: "", owner: "ada", no_events: "" },
      may: ["Submit", "ListTokens", "CreateToken", "RevokeToken", "ListAudit"],
    },
    "actions/ListTokens": {
      tokens: [token, { ...token, id: "000000000001", role: "TOKEN_ROLE_WORKER", name: "gpu-01", revoked: time, why_not: "this token is revoked" }],
    },
    "actions/CreateToken": token,
    "actions/ListAudit": {
      lines: ["ok", "role viewer may not do this (CancelSweep): it needs role submitter"].map((outcome, i) => ({
        ...{ time, token: token.id, who: "ada", what: "CancelSweep (dashboard)", target: "study", outcome, key: String(2 - i) },
      })),
    },
  };
  for (const [path, answer] of Object.entries(answers))
    await page.route(`**/api/v1/${path}`, (route) => route.fulfill({ json: answer }));
}
