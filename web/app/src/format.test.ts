// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import {
  decimals,
  duration,
  fixed,
  plain,
  pText,
  rounded,
  rowName,
  signed,
  tick,
  withMinus,
  withSpread,
} from "./format";

test("numbers are shown with the digits that say something", () => {
  expect(plain(79.1234)).toBe("79.12");
  expect(plain(0.88219)).toBe("0.8822");
  expect(plain(12345)).toBe("12\u202f345");
  expect(plain(0.0000123)).toBe("1.23e−5");
  expect(plain(-2)).toBe("−2");
  expect(plain("NaN")).toBe("NaN");
  expect(plain("-Infinity")).toBe("−∞");
  expect(plain(undefined)).toBe("–");
});

test("numbers are rounded as the server rounds those of a table", () => {
  expect((95.175).toFixed(2)).toBe("95.17"); // by its last bit
  expect([95.175, 61.125, -61.125, 1.005, 0.285].map((value) => rounded(value, 2))).toEqual([
    "95.18",
    "61.13",
    "-61.13",
    "1.01",
    "0.29",
  ]);
  expect([0, -0.004, 1e-9, 12, 9.995].map((value) => rounded(value, 2))).toEqual([
    "0.00",
    "0.00",
    "0.00",
    "12.00",
    "10.00",
  ]);
  expect([rounded(2.5, 0), rounded(1e16, 1), rounded(1234567.25, 1)]).toEqual([
    "3",
    "10000000000000000.0",
    "1234567.3",
  ]);
});

test("statistics have a real minus, no minus zero, and a p that is never 0", () => {
  expect([fixed(-0.25, 2), fixed(-0.0004, 3), fixed(1, 1)]).toEqual(["−0.25", "0.000", "1.0"]);
  expect([pText(0.0312), pText(0.0001), pText(3e-9), pText(0)]).toEqual([
    "= 0.0312",
    "= 0.0001",
    "< 0.0001",
    "< 0.0001",
  ]);
});

test("a deviation has the digits of its mean", () => {
  expect(withSpread(74.1, 1.7396)).toBe("74.10 ± 1.74");
  expect(withSpread(0.88219, 0.012345)).toBe("0.8822 ± 0.0123");
  expect(withSpread(12, 0.5)).toBe("12.00 ± 0.50");
  expect(withSpread(0, 0)).toBe("0.0000 ± 0.0000");
  expect(withSpread(1.5e-5, 2.5e-6)).toBe("1.50e−5 ± 2.50e−6");
  expect(withSpread(0.5, 0.000024)).toBe("0.500000 ± 0.000024");
  expect(withSpread(-0.00001, 0.5)).toBe("0.0000 ± 0.5000");
});

test("ticks carry no empty zeros", () => {
  expect([1.5, 0.30000000000000004, 1000, 0.0002].map(tick)).toEqual(["1.5", "0.3", "1\u202f000", "2e−4"]);
});

test("differences have a sign, and none where nothing differs at the digits shown", () => {
  expect(signed(0.32, 2)).toBe("+0.32");
  expect(signed(-3.5, 1)).toBe("−3.5");
  expect(signed(-0.001, 2)).toBe("±0.00");
  expect(signed(-0.0000012, decimals("1.20e-7"))).toBe("−1.20e−6");
  expect(signed(0.0012, decimals("0.0034"))).toBe("+0.0012");
});

test("durations have two units at most", () => {
  expect([8, 125, 3725, 90000].map(duration)).toEqual(["8 s", "2 min 05 s", "1 h 02 min", "1 d 1 h"]);
  expect(duration(undefined)).toBe("–");
});

test("a row is called by its label alone where that says what the id says", () => {
  expect(rowName("a", "MSF, Simplest")).toBe("a MSF, Simplest");
  expect(rowName("lr=0.1,groups=2", "lr=0.1, groups=2")).toBe("lr=0.1, groups=2");
});

test("a number's text by the server gets a real minus, and words keep their hyphens", () => {
  expect(withMinus("-14.57")).toBe("\u221214.57");
  expect(withMinus("-16.33 to -12.82")).toBe("\u221216.33 to \u221212.82");
  expect(withMinus("+0.29")).toBe("+0.29");
  expect(withMinus("top-k")).toBe("top-k");
});
