// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { kMostDrawn, windowAt } from "./window";

test("the lines in sight are drawn, some around them, and no others", () => {
  for (const hidden of [0, 1, 999, 34 * 2500, 34 * 4990, 1e9]) {
    const { from, to } = windowAt(hidden, 800, 5000);
    const first = Math.min(4999, Math.floor(hidden / 34));
    expect(from).toBeGreaterThanOrEqual(0);
    expect(from).toBeLessThanOrEqual(first);
    expect(to).toBeGreaterThanOrEqual(Math.min(5000, first + Math.ceil(800 / 34)));
    expect(to).toBeLessThanOrEqual(5000);
    expect(to - from).toBeLessThan(kMostDrawn);
  }
  expect(windowAt(-500, 800, 5000).from).toBe(0);
});
