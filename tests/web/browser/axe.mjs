// SPDX-License-Identifier: Apache-2.0
// What axe-core finds on a page, by WCAG 2.2 AA and its own best practice.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const kAxe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const kRules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** A line for each violation, with `where` it is; of what a selector finds alone, if one is given. */
export async function violationsOf(page, where, selector = "") {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(kAxe);
  const { violations } = await page.evaluate(
    ([rules, part]) => globalThis.axe.run(part || document, { runOnly: { type: "tag", values: rules }, resultTypes: ["violations"] }),
    [kRules, selector],
  );
  return violations.map(
    ({ id, help, nodes }) => `${where}: ${id}: ${help}: ${nodes.map((node) => node.target.join(" ")).slice(0, 4).join(", ")}`,
  );
}
