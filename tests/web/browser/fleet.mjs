// SPDX-License-Identifier: Apache-2.0
// The real programs, for what a dashboard of a store alone cannot show: a scheduler, and a worker that runs commands.
import { execFileSync, spawn } from "node:child_process";
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { settles } from "./fixture.mjs";

const kBin = process.env.ABLATE_BIN ?? "";

/** Why the tests cannot run here, or false. */
export function missingPrograms() {
  return existsSync(join(kBin, "ablate-worker")) ? false : "ABLATE_BIN does not name the folder of the programs";
}

/** `signIn`: with TLS, so that people sign in. */
export async function startFleet({ signIn = false } = {}) {
  const home = mkdtempSync(join(tmpdir(), "ablate-acting-"));
  mkdirSync(join(home, "run"), { mode: 0o700 });
  const store = join(home, "results.db");
  const address = `unix:${home}/run/scheduler.sock`;
  const env = { ...process.env, ABLATE_HOME: home, ABLATE_SCHEDULER: address, NO_COLOR: "1" };
  const children = [];
  const start = (program, ...argv) => {
    const log = openSync(join(home, `${program}.log`), "a");
    const child = spawn(join(kBin, program), argv, { env, stdio: ["ignore", log, log] });
    closeSync(log);
    children.push({ child, ended: new Promise((resolve) => child.on("exit", resolve)) });
    return () => readFileSync(join(home, `${program}.log`), "utf8");
  };
  const ablate = (...argv) => execFileSync(join(kBin, "ablate"), argv, { env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  const tls = [];
  if (signIn) {
    ablate("init-fleet", "--name", "localhost", "--store", store);
    tls.push("--tls-certificate", join(home, "fleet", "server.crt"), "--tls-key", join(home, "fleet", "server.key"));
  }
  const said = start("ablate-scheduler", "--store", store, "--listen", address, "--http-port", "0", ...tls);
  const url = await settles(async () => {
    const found = /https?:\/\/127\.0\.0\.1:\d+\//.exec(said());
    if (!found) throw new Error(`the scheduler says no address: ${said()}`);
    return found[0];
  });
  if (!signIn)
    start("ablate-worker", "--scheduler", address, "--home", join(home, "worker"), "--name", "w1", "--runs-root", join(home, "runs"),
          "--slots", "1", "--allow-commands");
  return {
    url,
    home,
    store,
    ablate,
    json: (...argv) => JSON.parse(ablate(...argv, "--json")),
    summary: (sweep) => JSON.parse(ablate("show", sweep, "--json")).summary,
    /** Makes a file that commands of sweeps wait for. */
    touch: (name) => writeFileSync(join(home, name), ""),
    /** Creates a token of a role, and returns it. */
    token(role, name) {
      const file = join(home, `${name}.token`);
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
        const found = /http:\/\/127\.0\.0\.1:\d+\//.exec(reader());
        if (!found) throw new Error(`the dashboard says no address: ${reader()}`);
        return found[0];
      });
    },
    async stop() {
      for (const { child } of children.toReversed()) child.kill("SIGTERM");
      await Promise.all(children.map(({ ended }) => ended));
      rmSync(home, { recursive: true, force: true });
    },
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
