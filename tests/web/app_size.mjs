// SPDX-License-Identifier: Apache-2.0
// app_size.mjs DIST: whether the built app is within its budget: bytes of JavaScript as they travel, in Brotli. What a page needs is read
// before anything is shown, and all of it is in the program.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const kAll = 250_000;
const kEveryPage = 112_000;

const dist = process.argv[2];
const size = (file) => readFileSync(join(dist, `${file}.br`)).length;
const index = readFileSync(join(dist, "index.html"), "utf8");
const all = readdirSync(join(dist, "assets"))
  .filter((file) => file.endsWith(".js"))
  .map((file) => ({ file, bytes: size(`assets/${file}`), first: index.includes(`/assets/${file}`) }))
  .sort((a, b) => b.bytes - a.bytes);
const sum = (files) => files.reduce((bytes, file) => bytes + file.bytes, 0);
for (const { file, bytes, first } of all) console.log(`${bytes} ${file}${first ? ", on every page" : ""}`);
const [total, every] = [sum(all), sum(all.filter(({ first }) => first))];
console.log(`${every} on every page of at most ${kEveryPage}, ${total} in all of at most ${kAll}`);
assert.ok(all.length > 1 && every > 0, `${dist} has the built app`);
assert.ok(every <= kEveryPage, `JavaScript on every page: ${every} bytes compressed, more than ${kEveryPage}`);
assert.ok(total <= kAll, `JavaScript in all: ${total} bytes compressed, more than ${kAll}`);
