// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import type { Table } from "../../../../generated/ablate";
import { ownRows, piecesOf, rowsIn } from "./pieces";
import { kMostDrawn, windowAt } from "./window";

const part = (ids: string, next: number, left_out: number): Table =>
  ({ baseline: "b", rows: [...ids].map((id) => ({ id })), next, left_out }) as unknown as Table;
const own = (of: Table, first: number) =>
  ownRows(of, first)
    .map((row) => row.id)
    .join("");

test("the baseline's row that comes with a part is none of its own", () => {
  expect(own(part("bcd", 0, 0), 0)).toBe("bcd");
  expect(own(part("bde", 5, 5), 3)).toBe("de"); // of 8 rows
  expect(own(part("acb", 2, 5), 0)).toBe("ac"); // the baseline is behind
  expect(own(part("abc", 3, 5), 0)).toBe("abc"); // and here in its place
  expect(own(part("b", 0, 7), 8)).toBe(""); // behind the end
  expect(rowsIn(part("bde", 5, 5))).toBe(8);
  expect(piecesOf(0)).toEqual([]);
  expect(piecesOf(200)).toEqual([0]);
  expect(piecesOf(401)).toEqual([0, 1, 2]);
});

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
