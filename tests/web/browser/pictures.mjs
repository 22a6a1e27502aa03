// SPDX-License-Identifier: Apache-2.0
// ABLATE_BIN=… node pictures.mjs FOLDER [HOME]: pictures of every page (PICTURES=home,queue: of these), light and dark, wide and on a phone, as docs/dashboard.md shows them.
// HOME keeps the store, so that a second call trains nothing again: the repository's results (docs/results/cifar.abl), a sweep of
// factors that is trained here in some minutes, and one that is under way.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openPage, settles, startBrowser, write } from "./fixture.mjs";
import { startFleet } from "./fleet.mjs";
import { withPalette } from "./palette_png.mjs";

/** As tall as pictures may be: what is below is like what is above. */
const kSizes = { "": { width: 1280, height: 1100 }, "-phone": { width: 390, height: 1200 } };
const kTrains = { timeout: 3_600_000 };

/** What depends on what: 2 × 2 × 3 rows, trained from nothing, and looked into. */
const kFactors = `ablate: 1
name: kernel-depth-rate
base:
  model: {family: simple-vit, dim: 64, depth: 1, heads: 2, dim_head: 16, mlp_dim: 128, patch: 8}
  data: {name: negative-shapes, train_images: 12000, val_images: 2000}
  recipe: {use: demo, epochs: 1, eval_every: 0.125}
factors:
  model.attention:
    - {label: dot, value: {kernel: dot, probe: none}}
    - {label: gaussian, value: {kernel: gaussian, probe: inside}}
  model.depth: [1, 2]
  recipe.lr: [0.001, 0.003, 0.01]
seeds: [0, 1, 2]
table:
  baseline: "attention=dot,depth=1,lr=0.001"
  columns:
    - {name: acc, heading: "top-1", metric: val/top1}
    - {name: loss, metric: val/loss}
    - {name: params, count: params.weights, digits: 3}
    - {name: macs, heading: multiply-adds, count: flops.macs, digits: 2}
probes: [feature-norms, subspace-similarity, {name: attention, images: 3}]
retry: {max: 3}
`;
/** One that is under way on the pictures, with a row that fails. */
const kUnderWay = (name, seed) => `ablate: 1
name: ${name}
base:
  model: {family: simple-vit, dim: 64, depth: 1, heads: 2, dim_head: 16, mlp_dim: 128, patch: 8}
  data: {name: negative-shapes, train_images: 40000, val_images: 2000}
  recipe: {use: demo, eval_every: 0.1}
rows:
  - {id: hot, label: "a rate that diverges", set: {recipe.lr: 1.0e+30}}
  - {id: a, label: "MSF, Simplest", set: {model.attention: {kernel: gaussian, probe: inside, share: QQQQQ}}}
  - {id: n, label: "MSF, 4-matrices", set: {model.attention: {kernel: gaussian, probe: inside, share: QKVVW}}}
  - {id: r, label: "MSF, Full", set: {model.attention: {kernel: gaussian, probe: inside, share: QKVPW}}}
seeds: [${seed}, ${seed + 1}]
table: {baseline: r, columns: [{name: acc, heading: "top-1", metric: val/top1}]}
retry: {max: 0}
`;
/** What its file became once the probes had been looked at. */
const kExtended = kFactors.replace("probes:", '    - {name: norm, heading: "feature norm", probe: feature-norms/last}\nprobes:');
const kNotes = `Does the Gaussian kernel need another learning rate than the dot product?

- depth 2 asks for **0.003** with either
- 0.01 is worth its own sweep
`;
const kWritten = `ablate: 1
name: token-layout
base:
  model: {preset: simple-vit-nano}
  data: {name: shapes}
  recipe: {use: demo, epochs: 2}
rows:
  - {id: orig, label: "Original", set: {model.attention: {kernel: dot, probe: none}}}
  - {id: msf, label: "MSF, Full", set: {model.attention: {kernel: gaussian, probe: inside}}}
seeds: [0, 1, 2]
table:
  baseline: orig
  columns:
    - {name: acc, heading: "top-1", metric: val/top1}
    - {name: params, count: params.weights}
`;

/** The fleet of a home, with what is stored already. */
async function started(home) {
  const bin = join(process.env.ABLATE_BIN ?? "", "ablate");
  if (!existsSync(join(home, "results.db"))) {
    mkdirSync(home, { recursive: true });
    const archive = new URL("../../../docs/results/cifar.abl", import.meta.url).pathname;
    execFileSync(bin, ["import", archive, "--store", join(home, "results.db")], { env: { ...process.env, ABLATE_HOME: home }, stdio: "inherit" });
  }
  return startFleet({ signIn: true, worker: "cellar-1", kept: home });
}

/** Trains what the pictures show, unless that was done. */
async function train(fleet) {
  const trials = () => fleet.json("show", "kernel-depth-rate").trials;
  if (!fleet.json("ls").sweeps.some(({ name }) => name === "kernel-depth-rate"))
    fleet.ablate("submit", fleet.write("kernel-depth-rate.yaml", kFactors));
  if (trials().every(({ state }) => state !== "TRIAL_STATE_COMPLETED")) {
    // one that is killed, and resumes from its checkpoint
    await settles(() => {
      const trial = trials().find(({ state, step }) => state === "TRIAL_STATE_RUNNING" && step > 60);
      if (!trial || !fleet.killRun(trial)) throw new Error("nothing is killed yet");
    }, kTrains);
  }
  await settles(() => {
    if (fleet.summary("kernel-depth-rate").state !== "SWEEP_STATE_COMPLETED") throw new Error("kernel-depth-rate is not complete");
  }, kTrains);
  fleet.ablate("extend", fleet.write("kernel-depth-rate.yaml", kExtended), "--yes");
  fleet.ablate("annotate", "kernel-depth-rate", "--tag", "attention", "--tag", "shapes", "--pin", "--notes", fleet.write("notes.md", kNotes));
  fleet.ablate("annotate", "msf-table-1-cifar", "--tag", "paper");
}

/** Submits sweeps anew, and waits until a part of it is done and another runs. */
async function underWay(fleet) {
  const [name, other] = ["sharing", "sharing-more-seeds"];
  for (const old of fleet.json("ls").sweeps.filter((sweep) => [name, other].includes(sweep.name))) fleet.ablate("rm", old.name, "--yes");
  fleet.ablate("submit", fleet.write("sharing.yaml", kUnderWay(name, 0)));
  fleet.ablate("submit", fleet.write("more-seeds.yaml", kUnderWay(other, 2)));
  await settles(() => {
    const { trials } = fleet.json("show", name);
    const running = trials.find(({ state }) => state === "TRIAL_STATE_RUNNING");
    if (!trials.some(({ state }) => state === "TRIAL_STATE_COMPLETED") || !(running?.step > 40)) throw new Error("nothing runs");
  }, kTrains);
  return name;
}

/** Takes one page in both themes and both widths. `of`: the section that is wanted alone; `ready`: called before; `most`: pixels of the window. */
async function take({ page, address, path }, folder, name, { of, ready = async () => {}, most = Infinity } = {}) {
  for (const colorScheme of ["light", "dark"])
    for (const [size, viewport] of Object.entries(kSizes)) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.setViewportSize({ ...viewport, height: Math.min(viewport.height, most) });
      await page.goto(address(path).href);
      await page.locator(".live-live").waitFor();
      if (of) await page.locator(".bar").evaluate((bar) => (bar.style.position = "static")); // it would stick in the picture's midst
      if (path !== "/design") await page.waitForFunction(() => !document.querySelector(".skeleton"));
      await ready(page);
      await page.mouse.move(0, 0);
      await page.waitForTimeout(400); // charts are drawn for their width in the next frames
      const top = of ? await page.locator(of).evaluate((section) => section.getBoundingClientRect().top + scrollY - 12) : 0;
      const height = of
        ? await page.locator(of).evaluate((section) => section.getBoundingClientRect().height + 24)
        : await page.evaluate(() => document.querySelector("main").getBoundingClientRect().bottom + scrollY);
      const clip = { x: 0, y: top, width: viewport.width, height: Math.min(height, viewport.height) };
      const png = await page.screenshot({ animations: "disabled", fullPage: true, clip });
      writeFileSync(join(folder, `${name}-${colorScheme}${size}.png`), withPalette(png));
    }
}

export async function takePictures(folder, home) {
  mkdirSync(folder, { recursive: true });
  const fleet = await started(home);
  let browser;
  try {
    await train(fleet);
    browser = await startBrowser({ trusting: true });
    const { page } = await openPage(browser);
    await fleet.signIn(page, fleet.token("admin", "ada"));
    const address = (path) => new URL(path, fleet.url);
    const read = (path) => page.evaluate(async (of) => (await fetch(`/api/v1${of}`)).json(), path);

    const wanted = process.env.PICTURES?.split(","); // these alone
    const shoot = (name, path, options) => !wanted || wanted.includes(name) ? take({ page, address, path }, folder, name, options) : undefined;
    const { runs } = await read("/runs?sweep=kernel-depth-rate&limit=40");
    const resumed = runs.find(({ attempt, state }) => attempt > 1 && state === "RUN_STATE_COMPLETED") ?? runs[0];
    const [dot, gaussian] = ["dot", "gaussian"].map((kernel) =>
      runs.find(({ state, rows }) => state === "RUN_STATE_COMPLETED" && rows[0].row === `attention=${kernel},depth=2,lr=0.003`),
    );

    if (!wanted || ["home", "queue", "workers", "sweeps", "failures"].some((name) => wanted.includes(name))) {
      const name = await underWay(fleet);
      await shoot("home", "/");
      await shoot("queue", "/queue");
      await shoot("workers", "/workers");
      await shoot("sweeps", "/sweeps");
      await shoot("failures", `/sweeps/${name}/failures`);
      fleet.ablate("cancel", name);
      fleet.ablate("cancel", "sharing-more-seeds");
    }

    await shoot("sweep", "/sweeps/msf-table-1-cifar");
    for (const chart of ["bars", "scatter", "heat", "parallel", "effects"])
      await shoot(`charts-${chart}`, `/sweeps/kernel-depth-rate?chart=${chart}&chart-mean=1`, { of: "section[aria-labelledby=charts]" });
    await shoot("curves", "/sweeps/kernel-depth-rate", { of: "section[aria-labelledby=curves]" });
    await shoot("file", "/sweeps/kernel-depth-rate?file=1..2", { of: "#file" });
    await shoot("run", `/runs/${resumed.id}`);
    const opened = async (of) => {
      const closed = of.locator(".probe-whole:not([open]) > summary");
      while ((await closed.count()) > 0) await closed.first().click();
      await of.waitForFunction(() => !document.querySelector(".probe-whole .skeleton"));
    };
    await shoot("probes", `/runs/${gaussian.id}`, { of: "section[aria-labelledby=probes]", ready: opened });
    await shoot("resources", `/runs/${resumed.id}`, { of: "section[aria-labelledby=resources]" });
    await shoot("time-line", `/runs/${resumed.id}`, { of: "section[aria-labelledby=time-line]" });
    await shoot("compare", "/compare?a=msf-table-1-cifar/a&b=msf-table-1-cifar/r");
    await shoot("compare-probes", `/compare?a=${dot.id}&b=${gaussian.id}`, { of: "section[aria-labelledby=probes]", ready: opened });
    await shoot("tables", "/tables");
    await shoot("settings", "/settings");
    await shoot("design", "/design");
    await shoot("submit", "/submit", {
      most: 760, // the editor is as tall as the window
      async ready(at) {
        await write(at, kWritten);
        await at.getByText("The file is valid.").waitFor();
        await at.locator(".plan dd").first().waitFor();
      },
    });
  } finally {
    await browser?.close();
    await fleet.stop();
  }
}

const [folder, home = join(mkdtempSync(join(tmpdir(), "ablate-pictures-")), "home")] = process.argv.slice(2);
await takePictures(folder, home);
