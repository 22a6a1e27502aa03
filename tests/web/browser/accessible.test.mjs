// SPDX-License-Identifier: Apache-2.0
// Every page, light and dark, wide and on a phone, as axe-core judges it by WCAG 2.2 AA.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { describe, test } from "node:test";
import { missing, openPage, useDashboard } from "./fixture.mjs";

const kAxe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const kRules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const kSizes = { wide: { width: 1360, height: 900 }, phone: { width: 390, height: 844 } };

describe("the pages for everybody", { skip: missing() }, () => {
  let paths;
  const dashboard = useDashboard({
    async ready({ tell, served }) {
      await tell("incomplete unfilled");
      await tell("fail");
      const { runs } = await served("/runs?limit=1");
      paths = [
        "/",
        "/sweeps",
        "/sweeps?q=stat:x",
        "/sweeps/msf-sharing",
        "/sweeps/msf-sharing?row=msf&column=acc",
        "/sweeps/msf-sharing/failures",
        "/sweeps/unfilled",
        `/runs/${runs[0].id}`,
        "/compare",
        "/compare?a=msf-sharing/orig&b=msf-sharing/msf",
        "/tables",
        "/queue",
        "/workers",
        "/submit",
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
          await page.waitForFunction(() => !document.querySelector(".skeleton"));
          await page.evaluate(kAxe);
          const { violations } = await page.evaluate(
            (rules) => globalThis.axe.run(document, { runOnly: { type: "tag", values: rules } }),
            kRules,
          );
          for (const { id, help, nodes } of violations)
            found.push(`${path}: ${id}: ${help}: ${nodes.map((node) => node.target.join(" ")).slice(0, 4).join(", ")}`);
        }
        assert.deepEqual(found, []);
        await page.context().close();
      });
});
