// SPDX-License-Identifier: Apache-2.0
// node pictures.mjs URL FOLDER: pictures of a running dashboard's pages, light and dark, of its newest sweep and run.
import { mkdirSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { openPage, startBrowser } from "./fixture.mjs";

export async function takePictures(browser, url, folder) {
  mkdirSync(folder, { recursive: true });
  const served = async (path) => (await fetch(new URL(`/api/v1${path}`, url))).json();
  const pages = { home: "/", sweeps: "/sweeps", tables: "/tables", queue: "/queue", workers: "/workers" };
  const [sweep] = (await served("/sweeps")).sweeps;
  if (sweep) pages.sweep = `/sweeps/${encodeURIComponent(sweep.name)}`;
  if (sweep) pages.failures = `/sweeps/${encodeURIComponent(sweep.name)}/failures`;
  const [run] = (await served("/runs?limit=1")).runs;
  if (run) pages.run = `/runs/${run.id}`;
  for (const colorScheme of ["light", "dark"])
    for (const [name, path] of Object.entries(pages)) {
      const { page } = await openPage(browser, { colorScheme });
      await page.goto(new URL(path, url).href);
      await page.getByText("Live", { exact: true }).waitFor();
      await page.waitForFunction(
        () => document.querySelector("table, .notice") && !document.querySelector(".skeleton"),
      );
      await page.screenshot({
        path: `${folder}/${name}-${colorScheme}.png`,
        fullPage: true,
        animations: "disabled",
      });
      await page.context().close();
    }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [url, folder] = process.argv.slice(2);
  const browser = await startBrowser();
  await takePictures(browser, url, folder);
  await browser.close();
}
