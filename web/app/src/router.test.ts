// SPDX-License-Identifier: Apache-2.0
import { afterEach, expect, test, vi } from "vitest";
import { withQuery } from "./router";

const at = (search: string): unknown => vi.stubGlobal("location", { pathname: "/sweeps/s", search });
afterEach(() => vi.unstubAllGlobals());

test("what is set replaces what was there, and all else stays", () => {
  at("?a=1&b=2&b=3&c=x%20y");
  expect(withQuery({ b: "4" })).toBe("/sweeps/s?a=1&c=x+y&b=4");
  expect(withQuery({ b: ["5", "6&7"] })).toBe("/sweeps/s?a=1&c=x+y&b=5&b=6%267");
  expect(withQuery({ a: null, b: null, c: [] }, "#cell")).toBe("/sweeps/s#cell");
  expect(withQuery({ d: "" })).toBe("/sweeps/s?a=1&b=2&b=3&c=x+y&d=");
});

test("what is known of one query is not taken for another's", () => {
  at("?a=1&b=2");
  expect(withQuery({ b: null })).toBe("/sweeps/s?a=1");
  expect(withQuery({ a: null })).toBe("/sweeps/s?b=2");
  at("?a=3");
  expect(withQuery({ b: null })).toBe("/sweeps/s?a=3");
  at("");
  expect(withQuery({ b: "1" })).toBe("/sweeps/s?b=1");
});
