// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import type { Column, Pivot } from "../../../../generated/ablate";
import { headingOf } from "./columns";

const column = (level: string): Column => ({ heading: "acc", unit: "%", level }) as Column;
const by = (factors: string): Pivot => ({ by: factors, columns: [], picked: [] });

test("a column of a pivoted table names its factors with their levels", () => {
  expect(headingOf(column(""), by("kernel"))).toBe("acc (%)");
  expect(headingOf(column("dot"), by("model.attention.kernel"))).toBe("kernel=dot: acc (%)");
  expect(headingOf(column("dot, 0.001"), by("kernel, lr"))).toBe("kernel=dot, lr=0.001: acc (%)");
});

test("levels that cannot be told apart stay as they are", () => {
  expect(headingOf(column("[1, 2], dot"), by("groups, kernel"))).toBe("[1, 2], dot: acc (%)");
  expect(headingOf(column("dot"))).toBe("dot: acc (%)");
});
