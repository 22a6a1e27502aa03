// SPDX-License-Identifier: Apache-2.0
// What a person before the browser waits for, in Debian's headless chromium: `browser.mjs '{"side": …, "url": …}'` prints lines
// `{"what": …, "unit": …, "value": …}`. Sides: a sweep's page of ours with its table, charts and live tabs, or the page of runs of a
// peer. What cannot be done within `patience` seconds is a line `{"what": …, "not": why}`.
import { openPage, startBrowser } from "../../tests/web/browser/fixture.mjs";

const asked = JSON.parse(process.argv[2]);
const patience = (asked.patience ?? 60) * 1000;
const say = (what, unit, value) => console.log(JSON.stringify({ what, unit, value }));
const refuse = (what, why) =>
  console.log(JSON.stringify({ what, not: String(why.message ?? why).split("\n")[0] }));
const sleep = (ms) => new Promise((over) => setTimeout(over, ms));

/** When a table is there with what it is read for; evaluated in the page at each of its frames. */
const kDrawn = {
  ablate: () =>
    [...document.querySelectorAll("table.ablation tbody tr:not(.gap) td")].some((cell) =>
      /\d\.\d/.test(cell.textContent),
    ),
  // at this width its metrics stand further right: names are taken for values
  mlflow: () => [...document.querySelectorAll("a")].some((link) => /^trial-\d+$/.test(link.textContent)),
  // a list of trials, and the values of the first
  optuna: () => /Value\s+\d\.\d/.test(document.body?.innerText ?? ""),
  aim: () => /\d\.\d{3,}/.test(document.querySelector(".Table, .BaseTable, main")?.innerText ?? ""),
};

/** The rows that are seen, as one text. */
const rowsOf = {
  ablate: () =>
    [...document.querySelectorAll("table.ablation tbody tr:not(.gap):not(.unread) > th")]
      .slice(0, 12)
      .map((head) => head.textContent)
      .join("\n"),
  mlflow: () =>
    [...document.querySelectorAll("a")]
      .map((link) => link.textContent)
      .filter((text) => /^trial-\d+$/.test(text))
      .join("\n"),
};

/** Notes in each page when `drawn` first holds: once the frame that has it was painted. */
async function watchDrawn(page, drawn) {
  await page.addInitScript(`(() => {
    const drawn = ${drawn};
    const look = () => {
      if (!drawn()) return requestAnimationFrame(look);
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => (window.benchDrawn = performance.now());
      port2.postMessage(0);
    };
    requestAnimationFrame(look);
  })()`);
}

/** First contentful paint, the table, and what both took over the network, of pages that nobody has seen before. */
async function load(browser, side, address, repetitions, name) {
  for (let i = 0; i < repetitions; ++i) {
    const { page } = await openPage(browser);
    page.setDefaultTimeout(patience);
    const network = await page.context().newCDPSession(page);
    await network.send("Network.enable");
    let bytes = 0;
    network.on("Network.dataReceived", ({ encodedDataLength }) => (bytes += encodedDataLength));
    await watchDrawn(page, kDrawn[side]);
    await sleep(500); // the browser starts a process for the tab, which is nobody's page
    try {
      await page.goto(address, { waitUntil: "commit" });
      const drawn = await page.waitForFunction(() => window.benchDrawn, undefined, { timeout: patience });
      const paint = await page.evaluate(
        () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null,
      );
      const took = await drawn.jsonValue();
      if (paint !== null) say(`${name}: first contentful paint`, "ms", paint);
      say(`${name}: drawn`, "ms", took);
      say(`${name}: until then over the network`, "kB", bytes / 1000);
    } finally {
      await page.context().close();
    }
  }
}

/**
 * Does something to the page and waits for the first frame in which `rows` says something else. Returns: ms from the event itself
 * (`of`: its name) until that frame was painted.
 */
async function until(page, of, rows, act, settled = "() => true") {
  await page.evaluate(`window.benchDone = undefined; (() => {
    const rows = ${rows}, settled = ${settled};
    let begun;
    const before = rows();
    const look = () => {
      const now = rows();
      if (now === before || now === "" || !settled()) return requestAnimationFrame(look);
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => (window.benchDone = performance.now() - begun);
      port2.postMessage(0);
    };
    addEventListener(${JSON.stringify(of)}, (event) => {
      begun = event.timeStamp;
      requestAnimationFrame(look);
    }, { capture: true, once: true });
  })()`);
  await act();
  return (
    await page.waitForFunction(() => window.benchDone, undefined, { timeout: patience, polling: 20 })
  ).jsonValue();
}

/** As a function: the page's policy lets no text be run. */
const allRead = () =>
  ![...document.querySelectorAll("[role=status]")].some(({ textContent }) =>
    textContent.startsWith("Reading rows"),
  );

/** Sorting, finding and brushing in the table of a sweep. */
async function handle(browser, { url, sweep, repetitions }) {
  const { page } = await openPage(browser);
  page.setDefaultTimeout(patience);
  const rows = rowsOf.ablate;
  const open = async (query) => {
    await page.goto(`${url}sweeps/${sweep}?${query}`);
    await page.locator("table.ablation tbody tr td").first().waitFor();
    await sleep(500);
  };
  // its order turns with each click: up, down, as it was
  const sort = () => page.locator("table.ablation thead a.sort").filter({ hasText: "loss" }).first().click();

  await open("");
  say("first sort: rows in sight", "ms", await until(page, "click", rows, sort));
  const begun = Date.now();
  await page.waitForFunction(allRead, undefined, { timeout: patience });
  say("  first sort: then all rows are read", "ms", Date.now() - begun);
  for (let i = 0; i < repetitions; ++i) {
    say("sort", "ms", await until(page, "click", rows, sort));
    await sleep(200);
  }
  await open("chart=bars&parts=sd,n,delta,interval");
  await page.waitForFunction(allRead, undefined, { timeout: patience });
  await page.locator("section[aria-labelledby=charts] figure").first().waitFor();
  await sleep(1500);
  for (let i = 0; i < repetitions; ++i) {
    const name = i === 0 ? "sort with bars and intervals, the first" : "sort with bars and intervals";
    say(name, "ms", await until(page, "click", rows, sort));
    await sleep(400);
  }
  await open("chart=bars");
  await page.locator("section[aria-labelledby=charts] figure").first().waitFor();
  const box = page.locator(".table-controls input[type=search]");
  for (let i = 0; i < repetitions; ++i) {
    await box.focus();
    say("filter", "ms", await until(page, "input", rows, () => page.keyboard.insertText(String(1 + i))));
    await sleep(200);
    await until(page, "input", rows, () => box.fill(""));
    await sleep(200);
  }
  await open("chart=scatter&chart-x=i&chart-y=acc");
  const plot = page.getByRole("img", { name: /^Scatter of/ });
  await plot.waitFor();
  await page.waitForFunction(allRead, undefined, { timeout: patience });
  await sleep(500);
  for (let i = 0; i < repetitions; ++i) {
    await plot.scrollIntoViewIfNeeded();
    const { x, y, width, height } = await plot.boundingBox();
    await page.mouse.move(x + width * 0.4, y + 12);
    await page.mouse.down();
    await page.mouse.move(x + width * (0.7 + 0.02 * i), y + height - 30, { steps: 8 });
    say("brush", "ms", await until(page, "pointerup", rows, () => page.mouse.up()));
    await sleep(300);
    await until(page, "popstate", rows, () => page.goBack());
    await sleep(300);
  }
  await page.context().close();
}

/** CPU seconds of the browser's processes until now: of those that draw pages, and of all. */
async function cpu(session) {
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  const sum = (some) => some.reduce((all, { cpuTime }) => all + cpuTime, 0);
  return { pages: sum(processInfo.filter(({ type }) => type === "renderer")), all: sum(processInfo) };
}

/** What tabs cost while nobody does anything: CPU and network, over `seconds`. All of several count as looked at. */
async function watch({ url, seconds }, name, paths) {
  const browser = await startBrowser(); // alone, so that its processes are these tabs'
  try {
    const session = await browser.newBrowserCDPSession();
    const { page: first } = await openPage(browser);
    const pages = [first];
    while (pages.length < paths.length) pages.push(await first.context().newPage());
    let bytes = 0;
    for (const [i, page] of pages.entries()) {
      const network = await first.context().newCDPSession(page);
      await network.send("Network.enable");
      network.on("Network.dataReceived", ({ encodedDataLength }) => (bytes += encodedDataLength));
      await page.goto(`${url}${paths[i]}`);
    }
    await sleep(4000);
    const [before, begun] = [await cpu(session), performance.now()];
    bytes = 0;
    await sleep(seconds * 1000);
    const after = await cpu(session);
    const took = (performance.now() - begun) / 1000;
    say(`${name}: CPU of its page`, "% of a core", (100 * (after.pages - before.pages)) / took);
    say(`  ${name}: CPU of the whole browser`, "% of a core", (100 * (after.all - before.all)) / took);
    say(`${name}: over the network`, "kB/s", bytes / 1000 / took);
  } finally {
    await browser.close();
  }
}

/** What cannot be done is said, and the rest goes on. */
async function attempt(what, work) {
  try {
    await work();
  } catch (error) {
    refuse(what, error);
  }
}

async function ours(browser) {
  const { url, sweep, growing, run, repetitions } = asked;
  await attempt("loading", () =>
    load(browser, "ablate", `${url}sweeps/${sweep}`, repetitions, "a sweep's table"),
  );
  await attempt("sort, filter or brush", () => handle(browser, asked));
  if (!growing) return;
  const tabs = {
    "a live tab, a sweep": [`sweeps/${growing}`],
    "a live tab, its run": [`runs/${run}`],
    "a live tab, Home": [""],
    "a live tab, another sweep": [`sweeps/${sweep}`],
    "eight live tabs": [
      `sweeps/${growing}`,
      `runs/${run}`,
      "",
      `sweeps/${sweep}`,
      "sweeps",
      "queue",
      "workers",
      "tables",
    ],
  };
  for (const [name, paths] of Object.entries(tabs)) await attempt(name, () => watch(asked, name, paths));
}

async function peers(browser) {
  const { side, url, repetitions, seconds } = asked;
  await load(browser, side, url, repetitions, "a table of runs");
  if (side === "mlflow") {
    const { page } = await openPage(browser);
    page.setDefaultTimeout(patience);
    await page.goto(url);
    await page.waitForFunction(kDrawn.mlflow);
    await sleep(1500);
    for (let i = 0; i < repetitions; ++i) {
      const head = page.getByText("Created", { exact: true }).first();
      say("sort", "ms", await until(page, "click", rowsOf.mlflow, () => head.click()));
      await sleep(500);
    }
    await page.context().close();
  }
  const at = new URL(url);
  await watch({ url: `${at.origin}/`, seconds }, "a tab that is left open", [
    url.slice(at.origin.length + 1),
  ]);
}

const browser = await startBrowser();
console.log(JSON.stringify({ chromium: browser.version() }));
try {
  await (asked.side === "ablate" ? ours(browser) : peers(browser));
} catch (error) {
  refuse("the rest", error);
} finally {
  await browser.close();
}
