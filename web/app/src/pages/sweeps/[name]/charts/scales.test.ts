// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import css from "../../../../styles/base.css?raw";
import { contrast, inkOn, rampAt, shareOf } from "./colours";
import { brushAt, segmentsOf, sharesOf, trackOf } from "./parallel";
import { Frame } from "./frame";
import { tableOf } from "./made_up";
import { extentOf, scaleOf, ticksOf } from "./scales";

/** The tokens of base.css, light and dark. */
const themes = css.split("prefers-color-scheme: dark").map((text) => {
  const token = (name: string): string => new RegExp(`--${name}: (#[0-9a-f]+)`).exec(text)![1]!;
  return { panel: token("panel"), scale: [1, 2, 3, 4, 5].map((i) => token(`scale-${i}`)) };
});

test("each colour of the scale is told from the ground, text on it is readable, and lightness alone says which is higher", () => {
  expect(themes).toHaveLength(2);
  for (const { panel, scale } of themes) {
    let before = 0;
    for (let i = 0; i <= 200; ++i) {
      const color = rampAt(scale, i / 200);
      expect(contrast(color, panel)).toBeGreaterThanOrEqual(3);
      expect(contrast(color, inkOn(color))).toBeGreaterThanOrEqual(4.5);
      const away = contrast(color, panel);
      expect(away).toBeGreaterThanOrEqual(before - 0.02);
      before = away;
    }
  }
  expect(rampAt(["#000000", "#ffffff"], 2)).toBe("#ffffff");
  expect(shareOf(3, 3, 3)).toBe(0.5);
});

test("ticks are round, also of little and of equal numbers", () => {
  expect(ticksOf(72.3, 81, 5)).toEqual([74, 76, 78, 80]);
  expect(ticksOf(0, 1, 5)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
  expect(ticksOf(1e-7, 3e-7, 3)).toEqual([1e-7, 2e-7, 3e-7]);
  expect(ticksOf(1, 1, 5)).toEqual([]);
  const same = scaleOf(80, 80);
  expect(same.at(80)).toBe(0.5);
  expect(scaleOf(0, 0).at(0)).toBe(0.5);
});

test("a logarithmic axis has equal ratios equally far apart", () => {
  const scale = scaleOf(1e-4, 1, true);
  expect(scale.at(1e-3) - scale.at(1e-4)).toBeCloseTo(scale.at(1) - scale.at(0.1));
  expect(scale.back(scale.at(0.02))).toBeCloseTo(0.02);
  expect(scale.ticks).toEqual([1e-4, 1e-3, 1e-2, 0.1, 1]);
  expect(scaleOf(5, 5, true).at(5)).toBeCloseTo(0.5);
  expect(extentOf([[NaN, 3, -1, 0, 7, Infinity]])).toEqual({ low: -1, high: 7 });
  expect(extentOf([[-1, 0, 2]], true)).toEqual({ low: 2, high: 2 });
  expect(extentOf([[NaN]])).toBeUndefined();
});

test("a drag on a parallel axis is a brush, and a brush a range of the axis", () => {
  const table = tableOf(["acc"], { "k=a": [10], "k=b": [20], "k=c": [30] });
  const frame = new Frame(table, table.rows);
  const [acc, k] = [frame.axis("acc")!, frame.axis("factor.k")!].map((axis) => trackOf(frame, axis));
  expect([...acc!.at]).toEqual([0, 0.5, 1]);
  expect(brushAt(acc!, 0.25, 0.75)).toEqual({ kind: "range", axis: "acc", from: 15, to: 25 });
  expect(brushAt(acc!, 1.2, -0.1)).toBeUndefined();
  expect(sharesOf(acc!, { kind: "range", axis: "acc", from: 15, to: 99 })).toEqual([0.25, 1]);
  expect(brushAt(k!, 0.6, 0.4)).toEqual({ kind: "in", axis: "factor.k", levels: ["b"] });
  expect(brushAt(k!, 0.8, 0.9)).toEqual({ kind: "in", axis: "factor.k", levels: ["c"] });
  expect(brushAt(k!, 0, 1)).toBeUndefined();
  const [from, to] = sharesOf(k!, { kind: "in", axis: "factor.k", levels: ["b"] })!;
  expect(brushAt(k!, from, to)).toEqual({ kind: "in", axis: "factor.k", levels: ["b"] });
  expect(sharesOf(k!, { kind: "in", axis: "factor.k", levels: ["gone"] })).toBeUndefined();
});

test("lines that run together are drawn once, in the highest look", () => {
  const rows = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`k=${i % 2},v=${i}`, [i % 2]]));
  const table = tableOf(["acc"], rows);
  const frame = new Frame(table, table.rows);
  const tracks = ["factor.k", "acc"].map((key) => trackOf(frame, frame.axis(key)!));
  const looks = Int8Array.from(frame.rows, (_, i) => (i === 4 ? -1 : i === 7 ? 9 : 3));
  expect(segmentsOf(tracks, looks)).toEqual([
    { look: 3, points: [0, 0, 0] },
    { look: 9, points: [0, 1, 1] },
  ]);
});
