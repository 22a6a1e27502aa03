// SPDX-License-Identifier: Apache-2.0
// The real programs, for what a dashboard of a store alone cannot show: a scheduler, and a worker that trains and runs commands.
import { execFileSync, spawn } from "node:child_process";
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { settles } from "./fixture.mjs";

const kBin = process.env.ABLATE_BIN ?? "";

/** Why the tests cannot run here, or false. */
export function missingPrograms() {
  return existsSync(join(kBin, "ablate-worker")) ? false : "ABLATE_BIN does not name the folder of the programs";
}

/** A port that the kernel gives to no caller, so that it is still free when the scheduler starts again. */
async function freePort() {
  for (;;) {
    const port = 20_000 + Math.floor(10_000 * Math.random());
    const server = createServer();
    const free = await new Promise((found) =>
      server.once("error", () => found(false)).listen(port, "127.0.0.1", () => server.close(() => found(true))),
    );
    if (free) return port;
  }
}

/** Which processes run below a worker for a run's folder, by the environment that it gives them. */
function processesOf(folder) {
  return readdirSync("/proc").filter((entry) => {
    try {
      return /^\d+$/.test(entry) && readFileSync(`/proc/${entry}/environ`, "latin1").split("\0").includes(`ABLATE_RUN_DIR=${folder}`);
    } catch {
      return false; // it has ended meanwhile
    }
  });
}

/** `signIn`: with TLS, so that people sign in. `worker`: its name, or empty. `kept`: the home, which stays; else one that goes. */
export async function startFleet({ signIn = false, worker = signIn ? "" : "w1", kept = "" } = {}) {
  const home = kept || mkdtempSync(join(tmpdir(), "ablate-acting-"));
  mkdirSync(join(home, "run"), { mode: 0o700, recursive: true });
  const store = join(home, "results.db");
  const address = `unix:${home}/run/scheduler.sock`;
  const env = { ...process.env, ABLATE_HOME: home, ABLATE_SCHEDULER: address, NO_COLOR: "1" };
  const children = [];
  const start = (program, ...argv) => {
    const log = openSync(join(home, `${program}.log`), "a");
    const child = spawn(join(kBin, program), argv, { env, stdio: ["ignore", log, log] });
    closeSync(log);
    const one = { child, ended: new Promise((resolve) => child.on("exit", resolve)), said: () => readFileSync(join(home, `${program}.log`), "utf8") };
    children.push(one);
    return one;
  };
  const ablate = (...argv) => execFileSync(join(kBin, "ablate"), argv, { env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  const stop = async () => {
    for (const { child } of children.toReversed()) {
      child.kill("SIGTERM");
      child.kill("SIGCONT"); // one that a test has left stopped
    }
    await Promise.all(children.map(({ ended }) => ended));
    if (!kept) rmSync(home, { recursive: true, force: true });
  };
  const tls = [];
  if (signIn) {
    if (!existsSync(join(home, "fleet"))) ablate("init-fleet", "--name", "localhost", "--store", store);
    tls.push("--tls-certificate", join(home, "fleet", "server.crt"), "--tls-key", join(home, "fleet", "server.key"));
  }
  const port = await freePort();
  const startScheduler = () =>
    start("ablate-scheduler", "--store", store, "--listen", address, "--http-port", String(port), ...tls);
  let scheduler = startScheduler();
  const url = `${signIn ? "https" : "http"}://127.0.0.1:${port}/`;
  try {
    await settles(() => {
      if (!scheduler.said().includes(url)) throw new Error(`the scheduler does not say ${url}: ${scheduler.said()}`);
    });
  } catch (error) {
    await stop();
    throw error;
  }
  if (worker)
    start("ablate-worker", "--scheduler", address, "--home", join(home, "worker"), "--name", worker, "--runs-root", join(home, "runs"),
          "--slots", "1", "--threads", "1", "--allow-commands");
  return {
    url,
    home,
    store,
    ablate,
    json: (...argv) => JSON.parse(ablate(...argv, "--json")),
    summary: (sweep) => JSON.parse(ablate("show", sweep, "--json")).summary,
    /** SIGSTOP and SIGCONT of the scheduler; SIGKILL, and another in its place. */
    freeze: () => scheduler.child.kill("SIGSTOP"),
    thaw: () => scheduler.child.kill("SIGCONT"),
    async kill() {
      scheduler.child.kill("SIGKILL");
      await scheduler.ended;
    },
    startAgain: () => (scheduler = startScheduler()),
    /** SIGKILL to the program of a trial's attempt. */
    killRun({ id, attempt }) {
      const found = processesOf(join(home, "runs", String(id), String(attempt)));
      found.forEach((pid) => process.kill(Number(pid), "SIGKILL"));
      return found.length;
    },
    /** Makes a file that commands of sweeps wait for. */
    touch: (name) => writeFileSync(join(home, name), ""),
    /** A file of that text in its folder. */
    write(name, text) {
      writeFileSync(join(home, name), text);
      return join(home, name);
    },
    /** Creates a token of a role, and returns it. */
    token(role, name) {
      const file = join(home, `${name}.token`);
      rmSync(file, { force: true }); // of an earlier fleet in a kept home
      ablate("token", "create", "--role", role, "--name", name, "--out", file);
      return readFileSync(file, "utf8").trim();
    },
    /** Signs in with a token on the page that asks for it. */
    async signIn(page, token) {
      await page.goto(new URL("/sign-in", url).href);
      await page.getByLabel("Token").fill(token);
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { level: 1, name: "Home", exact: true }).waitFor();
    },
    /** A results file's dashboard beside it, without a scheduler. */
    async startReader() {
      const reader = start("ablate", "dashboard", "--store", store);
      return settles(async () => {
        const found = /http:\/\/127\.0\.0\.1:\d+\//.exec(reader.said());
        if (!found) throw new Error(`the dashboard says no address: ${reader.said()}`);
        return found[0];
      });
    },
    stop,
  };
}

/** A sweep of commands: rows a and b with seeds 0 and 1. They wait for the file `go`; row b fails until there is a file `mended`. */
export const sweepFile = (name, home) => `ablate: 1
name: ${name}
command:
  argv:
    - sh
    - -c
    - while [ ! -e ${home}/go ]; do sleep 0.05; done; [ "$0" = 1 ] || [ -e ${home}/mended ] || { echo no such luck; exit 3; }; echo '{"event":"metric","step":1,"values":{"acc":{seed}}}'
    - "{params.x}"
  folder: "{run_dir}"
  params: {x: 1}
  version: "1"
rows:
  - {id: a}
  - {id: b, set: {params.x: 2}}
seeds: [0, 1]
table: {columns: [{name: acc, metric: acc}]}
retry: {max: 0}
`;

/** A sweep that trains: an original and a variant, and one whose loss is soon not finite, with a label that is somebody's script. */
export const trainedFile = (name, { epochs = 30, rows = ["orig", "msf", "wild"], seeds = [0, 1] } = {}) => `ablate: 1
name: ${name}
base:
  model: {family: simple-vit, dim: 16, depth: 1, heads: 2, dim_head: 8, patch: 8}
  data: {name: shapes, train_images: 1000, val_images: 100}
  recipe: {use: demo, epochs: ${epochs}, batch: 50, eval_every: 5}
rows:
${[
  `  - {id: orig, label: "Orig."}`,
  `  - {id: msf, label: "MSF, full", set: {model.attention.kernel: gaussian, model.attention.probe: inside}}`,
  `  - {id: wild, label: "<img src=x onerror=alert(1)>", set: {recipe.lr: 1.0e+30}}`,
]
  .filter((line) => rows.some((id) => line.includes(`{id: ${id},`)))
  .join("\n")}
seeds: [${seeds.join(", ")}]
table:
  baseline: orig
  columns: [{name: acc, metric: val/top1, take: last}, {name: loss, metric: val/loss, take: last}, {name: params, count: params.weights, digits: 3}]
retry: {max: 0}
`;
