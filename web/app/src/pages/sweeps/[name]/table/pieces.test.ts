// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import type { Table } from "../../../../generated/ablate";
import { ownRows, piecesOf, rowsIn } from "./pieces";

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
