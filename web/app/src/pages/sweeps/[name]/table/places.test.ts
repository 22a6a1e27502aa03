// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { digestOf, placesIn } from "./places";

test("places are ranges", () => {
  expect(placesIn(Uint8Array.of(1, 1, 0, 1, 0, 0, 1, 1, 1))).toBe("0-1,3,6-8");
  expect(placesIn(Uint8Array.of(0, 0))).toBe("");
  expect(placesIn(new Uint8Array(10_000).fill(1))).toBe("0-9999");
});

test("ids have the digest that the server computes", () => {
  expect(digestOf([])).toBe("811c9dc5");
  expect(digestOf(["a"])).toBe(digestOf(new Set(["a"])));
  expect(digestOf(["ab"])).not.toBe(digestOf(["a", "b"]));
  expect(digestOf(["a", "b"])).not.toBe(digestOf(["b", "a"]));
  expect(digestOf(["ü"])).toMatch(/^[0-9a-f]{8}$/);
});
