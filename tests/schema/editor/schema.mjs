// SPDX-License-Identifier: Apache-2.0
// What the tests here have in common: where the tree is, and what the program prints.
import { execFileSync } from "node:child_process";

export const source = process.env.ABLATE_SOURCE ?? new URL("../../..", import.meta.url).pathname;
export const program = process.env.ABLATE ?? `${source}/build/bin/ablate`;

export const schema = (what) => JSON.parse(execFileSync(program, ["schema", what, "--json"], { encoding: "utf8", maxBuffer: 1 << 26 }));
