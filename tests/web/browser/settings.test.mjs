// SPDX-License-Identifier: Apache-2.0
// Who may do what: roles, tokens and the audit, with a real scheduler. SCREENSHOTS=folder keeps pictures.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { button, missing, openPage, picture, said, settles, startBrowser } from "./fixture.mjs";
import { missingPrograms, startFleet } from "./fleet.mjs";

const kSkip = missing() || missingPrograms();
const kToken = /^abl_[0-9a-f]{12}_[A-Za-z0-9_-]{43}$/;

const section = (page, name) => page.locator(`section[aria-labelledby=${name}]`);
const rowOf = (page, name) => section(page, "tokens").getByRole("row").filter({ has: page.getByRole("rowheader", { name }) });

/** Opens Settings by its key. */
async function openSettings(page) {
  await page.keyboard.press("g");
  await page.keyboard.press("e");
  await page.getByRole("heading", { level: 1, name: "Settings", exact: true }).waitFor();
  await page.waitForFunction(() => !document.querySelector(".skeleton"));
}

/** Creates a token on the page, and returns its text. */
async function create(page, { role, name, expires }) {
  await button(page, "Create token…").click();
  const dialog = page.getByRole("dialog", { name: "Create a token" });
  await dialog.getByLabel("Role").selectOption(role);
  await dialog.getByLabel("Name").fill(name);
  await dialog.getByLabel("Expires").selectOption(expires);
  await page.keyboard.press("Tab");
  await dialog.getByRole("button", { name: "Create", exact: true }).click();
  const text = await page.locator(".secret-text").innerText();
  assert.match(text, kToken);
  return text;
}

describe("settings with tokens", { skip: kSkip }, () => {
  let fleet;
  let browser;
  let secret;
  before(async () => {
    [fleet, browser] = await Promise.all([startFleet({ signIn: true }), startBrowser()]);
  });
  after(async () => {
    await browser?.close();
    await fleet?.stop();
  });

  async function signedIn(token, steps) {
    const { page, asked } = await openPage(browser, { ignoreHTTPSErrors: true, permissions: ["clipboard-read", "clipboard-write"] });
    await fleet.signIn(page, token);
    await steps(page, asked);
    await page.context().close();
  }
  const tokens = () => fleet.json("token", "ls").tokens;

  test("an admin creates a token: it is shown once, and kept and sent nowhere", () =>
    signedIn(fleet.token("admin", "ada"), async (page) => {
      const sent = [];
      page.on("request", (request) => sent.push(request.url(), request.postData() ?? ""));
      const told = [];
      page.on("console", (message) => told.push(message.text()));
      await openSettings(page);
      await section(page, "you").getByText("admin", { exact: true }).waitFor();
      assert.equal(await section(page, "you").getByText("No: ").count(), 0, "an admin may do everything");
      await rowOf(page, "ada yours").waitFor();
      secret = await create(page, { role: "viewer", name: "vic", expires: "in 30 days" });
      await picture(page, "settings-secret");
      await button(page, "Copy").click();
      await page.getByText("Copied").waitFor();
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), secret);
      await rowOf(page, "vic").getByText("valid").waitFor();
      const [made] = tokens();
      assert.deepEqual([made.name, made.role, made.made_by, made.id], ["vic", "TOKEN_ROLE_VIEWER", "ada", secret.slice(4, 16)]);
      const days = (Date.parse(made.expires) - Date.now()) / 86400_000;
      assert.ok(days > 29.9 && days < 30.1, `expires in ${days} days`);
      await button(page, "Done").click();
      const hidden = secret.slice(17);
      const kept = await page.evaluate(() => JSON.stringify([document.documentElement.outerHTML, { ...localStorage }, { ...sessionStorage }, history.state, location.href]));
      for (const text of [kept, ...sent, ...told]) assert.ok(!text.includes(hidden), "the secret is in nothing that stays");
      await page.reload();
      await rowOf(page, "vic").waitFor();
      assert.equal(await page.locator(".secret").count(), 0);
    }));

  test("a viewer reads what the role may do, and why there are no tokens and no audit; nothing is asked for in vain", async () => {
    await signedIn(secret, async (page, asked) => {
      await openSettings(page);
      await page.getByText("Only admins see tokens.").waitFor();
      await page.getByText("Only admins see the audit.").waitFor();
      const rights = page.getByRole("list", { name: "What you may do" });
      await rights.getByText("Create and revoke tokens: needs role admin").waitFor();
      await rights.getByText("Plan, submit and extend sweeps: needs role submitter").waitFor();
      await picture(page, "settings-viewer");
      assert.deepEqual(asked.filter(({ pathname }) => pathname.includes("/actions/")), []);
    });
    assert.deepEqual(fleet.json("audit").lines.filter(({ who, outcome }) => who === "vic" && outcome !== "ok"), []);
  });

  test("an error stays in the dialog, and no token is shown", () =>
    signedIn(fleet.token("admin", "ann"), async (page) => {
      await openSettings(page);
      await page.route("**/actions/CreateToken", (route) =>
        route.fulfill({ status: 503, contentType: "application/json", body: '{"code":"UNAVAILABLE","message":"the disk is full"}' }),
      );
      await button(page, "Create token…").click();
      const dialog = page.getByRole("dialog", { name: "Create a token" });
      await dialog.getByLabel("Name").fill("max");
      await page.keyboard.press("Enter");
      await dialog.getByRole("alert").filter({ hasText: "the disk is full" }).waitFor();
      assert.equal(await page.locator(".secret").count(), 0);
    }));

  test("a join token is for one worker, and always ends", () =>
    signedIn(fleet.token("admin", "amy"), async (page) => {
      await openSettings(page);
      await button(page, "Create token…").click();
      const dialog = page.getByRole("dialog", { name: "Create a token" });
      await dialog.getByLabel("Role").selectOption("join");
      assert.equal(await dialog.getByLabel("Expires").locator("option", { hasText: "never" }).count(), 0);
      await dialog.getByRole("button", { name: "Create", exact: true }).click();
      await page.getByText("ablate-worker --join-token-file").waitFor();
      const [made] = tokens();
      assert.deepEqual([made.name, made.role], ["a worker", "TOKEN_ROLE_JOIN"]);
      await rowOf(page, "a worker").filter({ hasText: made.id }).waitFor();
    }));

  test("a token is revoked once it was asked, and whoever is signed in with it is out", () =>
    signedIn(secret, async (theirs) => {
      await theirs.locator(".live-live").waitFor();
      await signedIn(fleet.token("admin", "abe"), async (page) => {
        await openSettings(page);
        const id = secret.slice(4, 16);
        await button(page, `Revoke the token of vic, ${id}`).click();
        const dialog = page.getByRole("dialog", { name: "Revoke the token of vic?" });
        await dialog.waitFor();
        await page.keyboard.press("Escape");
        await dialog.waitFor({ state: "detached" });
        assert.ok(!tokens().find((token) => token.id === id).revoked, "nothing was done");
        await button(page, `Revoke the token of vic, ${id}`).click();
        await dialog.getByText("Its sessions and calls end at once.").waitFor();
        await picture(page, "settings-revoke");
        await dialog.getByRole("button", { name: "Revoke", exact: true }).click();
        await said(page, `Revoked token ${id} of vic.`).waitFor();
        await rowOf(page, "vic").waitFor({ state: "detached" });
        await page.getByRole("link", { name: "Show 1 ended token" }).click();
        await rowOf(page, "vic").getByText("revoked").waitFor();
        assert.equal(new URL(page.url()).searchParams.get("ended"), "1");
        assert.equal(await button(page, `Revoke the token of vic, ${id}`).count(), 0);
      });
      await theirs.getByRole("alert").filter({ hasText: "You are signed out: this token is revoked." }).waitFor();
    }));

  test("who revokes their own token is warned, answered and out", () =>
    signedIn(fleet.token("admin", "eve"), async (page) => {
      await openSettings(page);
      await rowOf(page, "eve yours").getByRole("button").click();
      await page.getByRole("dialog").getByText("You are signed in with this token").waitFor();
      await page.getByRole("dialog").getByRole("button", { name: "Revoke", exact: true }).click();
      await page.getByRole("alert").filter({ hasText: "You are signed out" }).waitFor();
      assert.ok(tokens().find(({ name }) => name === "eve").revoked);
    }));

  test("the audit is read by page, person and request, and the address says which", () =>
    signedIn(fleet.token("admin", "art"), async (page) => {
      for (let i = 0; i < 60; ++i)
        await page.evaluate((name) => fetch("/api/v1/actions/DrainWorker", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ name }) }), `w${i}`);
      await openSettings(page);
      const audit = section(page, "audit");
      const rows = audit.locator("tbody tr");
      const shows = (count, text) =>
        settles(async () => {
          assert.equal(await rows.count(), count);
          assert.ok((await rows.first().innerText()).includes(text), await rows.first().innerText());
        });
      await shows(50, "w59");
      await audit.getByText("dashboard", { exact: true }).first().waitFor();
      await audit.getByRole("link", { name: "Older" }).click();
      await settles(async () => assert.ok((await rows.first().innerText()).includes("w9")));
      const older = new URL(page.url());
      assert.match(older.searchParams.get("before"), /^\d+$/);
      await page.reload();
      await settles(async () => assert.ok((await rows.first().innerText()).includes("w9"), "a link shows the same"));
      await audit.getByRole("link", { name: "Newest" }).click();
      await shows(50, "w59");
      await audit.getByRole("searchbox", { name: "Person" }).fill("ada");
      await audit.getByRole("combobox", { name: "Request" }).fill("CreateToken");
      await button(audit, "Show").click();
      await shows(1, "vic");
      await picture(page, "settings-audit");
      const { searchParams } = new URL(page.url());
      assert.deepEqual([searchParams.get("who"), searchParams.get("what"), searchParams.get("before")], ["ada", "CreateToken", null]);
      await page.goBack();
      await shows(50, "w59");
      await audit.getByRole("link", { name: "art", exact: true }).first().click();
      await shows(50, "w59");
      await audit.getByRole("link", { name: "Older" }).click();
      await shows(11, "w9"); // the last is that this person signed in
      await audit.getByRole("searchbox", { name: "Person" }).fill("nobody");
      await page.keyboard.press("Enter");
      await audit.getByText("No line matches.").waitFor();
      assert.equal(await page.evaluate(() => document.activeElement?.name), "who", "the focus stays in the field");
      await audit.getByRole("link", { name: "Everything" }).click();
      await shows(50, "w59");
    }));
});

describe("settings without tokens", { skip: kSkip }, () => {
  let fleet;
  let browser;
  before(async () => {
    [fleet, browser] = await Promise.all([startFleet(), startBrowser()]);
  });
  after(async () => {
    await browser?.close();
    await fleet?.stop();
  });

  test("a scheduler where nobody signs in says so", async () => {
    const { page, problems } = await openPage(browser);
    await page.goto(fleet.url);
    await openSettings(page);
    await page.getByText("Nobody signs in here").waitFor();
    await page.getByText("This scheduler asks nobody for a token.").waitFor();
    await page.getByText("No tokens yet.").waitFor();
    await create(page, { role: "submitter", name: "sue", expires: "never" });
    await rowOf(page, "sue").getByText("never").first().waitFor();
    const [made] = fleet.json("token", "ls").tokens;
    assert.deepEqual([made.name, made.role, made.expires], ["sue", "TOKEN_ROLE_SUBMITTER", undefined]);
    await section(page, "audit").getByRole("link", { name: "CreateToken" }).waitFor();
    assert.deepEqual(problems, []);
    await page.context().close();
  });

  test("what is kept for how long is said, with how much there is", async () => {
    const { page, problems } = await openPage(browser);
    await page.goto(fleet.url);
    await openSettings(page);
    const kept = section(page, "retention");
    const of = (place, what) =>
      kept.getByRole("table", { name: place }).getByRole("row").filter({ has: page.getByRole("rowheader", { name: what, exact: true }) });
    assert.match(await of("Results file", "Audit").innerText(), /newest 100,000 lines[\s\S]* of 100\D?000 lines/);
    assert.match(await of("Depot", "Data sets that were pushed").innerText(), /0 of 1\D?000 data sets/);
    assert.match(await kept.getByRole("heading", { name: /^Depot/ }).innerText(), /0 B of 20\.0 GiB/);
    const said = fleet.json("retention").places.map(({ name }) => name);
    assert.deepEqual(
      (await kept.getByRole("heading", { level: 3 }).allInnerTexts()).map((text, i) => text.slice(0, said[i].length)),
      said,
    );
    await picture(page, "settings-retention");
    assert.deepEqual(problems, []);
    await page.context().close();
  });

  test("a results file has neither tokens nor an audit, and the page says why", async () => {
    const url = await fleet.startReader();
    const { page, problems, asked } = await openPage(browser);
    await page.goto(url);
    await openSettings(page);
    await page.getByText("Read only: this dashboard shows a results file").waitFor();
    await page.getByText("Tokens and the audit are not shown here.").waitFor();
    await section(page, "retention").getByRole("rowheader", { name: "Metric points" }).waitFor();
    assert.deepEqual(asked.filter(({ pathname }) => pathname.includes("/actions/")), []);
    assert.deepEqual(problems, []);
    await page.context().close();
  });
});
