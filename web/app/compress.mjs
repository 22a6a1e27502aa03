// SPDX-License-Identifier: Apache-2.0
// compress.mjs DIST: puts beside each asset of the built app its form in Brotli, which the server sends as it is.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync } from "node:zlib";

const assets = join(process.argv[2], "assets");
for (const name of readdirSync(assets)) {
  const file = join(assets, name);
  writeFileSync(`${file}.br`, brotliCompressSync(readFileSync(file)));
}
