// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { chosenAxes, gridOf, rangeOf, shapeOf, ticksOf } from "./array";
import { canBeProbed, differenceText, readFound, unitOf, withUnit, type FoundArray } from "./found";
import { isLegend } from "./legend";
import { inkOn, scaleFor } from "./scale";

const axis = (name: string, ...places: string[]) => ({ name, places });
const kNorms: FoundArray = { name: "norm", axes: [axis("layer", "embedding", "1")], values: [5, 7] };
const kSimilar: FoundArray = {
  name: "similarity",
  axes: [axis("layer", "1", "2"), axis("role", "query", "key"), axis("other role", "query", "key")],
  values: [1, 0.2, 0.2, 1, 1, 0.4, NaN, 1],
};
const kCodes: FoundArray = {
  name: "norm",
  axes: [axis("codes", "1.1", "1.2", "2.1"), axis("role", "query", "key")],
  values: [1, 2, 3, 4, 5, 6],
};

test("what is stored is read, and whatever is not as expected is left out", () => {
  const found = readFound(
    `{"probe": "p", "settings": {"images": 8, "sizes": [], "some": [1, 2]}, "values": {"a": 1, "b": "NaN", "c": null},
      "arrays": {"x": {"axes": [{"name": "layer", "places": ["1", 2]}], "values": [1, "Infinity"]},
                 "wrong": {"axes": [{"name": "layer", "places": ["1"]}], "values": [1, 2]}, "none": 5},
      "pictures": [{"name": "maps"}], "notes": ["n"], "missing": "p: nothing to see"}`,
  );
  expect(found.settings.map(({ name, text }) => `${name}=${text}`)).toEqual([
    "images=8",
    "sizes=default",
    "some=1,2",
  ]);
  expect(found.values.map(({ value }) => value)).toEqual([1, NaN, NaN]);
  expect(found.arrays).toEqual([
    { name: "x", axes: [axis("layer", "1", "2")], values: [1, Number.POSITIVE_INFINITY] },
  ]);
  expect([found.pictures, found.notes, found.missing]).toEqual([["maps"], ["n"], "nothing to see"]);
  expect(readFound("{").missing).toContain("cannot be read");
  expect(readFound("[]").values).toEqual([]);
});

test("values have their units", () => {
  expect(withUnit(98.5, unitOf("accuracy-by-resolution", "top1-96"))).toBe("98.50 %");
  expect(withUnit(41_200_000, unitOf("inference-cost", "memory_bytes-32"))).toBe("41.20 MB");
  expect(withUnit(0, "bytes")).toBe("0 B");
  expect([withUnit(NaN, ""), withUnit(3, unitOf("mine", "top1-96"))]).toEqual(["–", "3"]);
  expect(differenceText(2, 1.5, "nats")).toBe("−0.5000 nats");
  expect(differenceText(1e6, 3e6, "bytes")).toBe("+2 MB");
  expect(differenceText(1, NaN, "")).toBe("–");
  expect([differenceText(65.2, 66.2, "%"), differenceText(0.37, 0.37, "")]).toEqual(["+1.00", "±0.0000"]);
});

test("each value that is declared with a unit has one here", () => {
  const [text] = Object.values(
    import.meta.glob<string>("../../../../protocol/probes.cc", {
      query: "?raw",
      import: "default",
      eager: true,
    }),
  );
  const declared = text!.slice(text!.indexOf("kAll{")).split(".sentence");
  let probe = "";
  const found: string[] = [];
  for (const part of declared) {
    for (const [, name] of part.matchAll(/\.name = "([\w-]+)", \.unit = Unit/g))
      found.push(`${probe}/${name}`);
    probe = /\.name = "([\w-]+)",\s*$/.exec(part)?.[1] ?? probe;
  }
  expect(found).toEqual([
    "accuracy-by-resolution/top1",
    "accuracy-by-resolution/top5",
    "inference-cost/memory_bytes",
  ]);
  for (const each of found) expect(unitOf(...(each.split("/") as [string, string]))).not.toBe("");
});

test("one axis is a line, few things by layer are lines, and two equal axes are a map", () => {
  expect(shapeOf(kNorms)).toEqual({ kind: "lines", x: 0, each: undefined });
  expect(shapeOf(kCodes)).toEqual({ kind: "lines", x: 0, each: 1 });
  expect(shapeOf(kSimilar)).toEqual({ kind: "map", rows: 1, columns: 2 });
  expect(chosenAxes(kSimilar, shapeOf(kSimilar))).toEqual([0]);
  expect(gridOf(kSimilar, shapeOf(kSimilar), [1, 0, 0]).values).toEqual([
    [1, 0.4],
    [NaN, 1],
  ]);
  expect(gridOf(kCodes, shapeOf(kCodes), [0, 0])).toMatchObject({
    ...{ rowName: "codes", columns: ["query", "key"] },
    values: [
      [1, 2],
      [3, 4],
      [5, 6],
    ],
  });
  expect(gridOf(kNorms, shapeOf(kNorms), [0])).toMatchObject({ columns: ["norm"], values: [[5], [7]] });
});

test("ticks are round and enclose the numbers", () => {
  expect(ticksOf(0, 11.5, 4)).toEqual([0, 5, 10, 15]);
  expect(ticksOf(0.2, 0.2, 4).length).toBeGreaterThan(1);
  expect(rangeOf([NaN, 3, -1, Infinity])).toEqual([-1, 3]);
  expect(rangeOf([NaN])).toBeUndefined();
});

test("text on every colour of the scales has a contrast of 4.5 and more", () => {
  const part = (c: number): number =>
    c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4;
  for (const scale of [scaleFor(0, 1, true), scaleFor(-2, 1, false)])
    for (let value = scale.low; value <= scale.high; value += (scale.high - scale.low) / 200) {
      const [r, g, b] = scale.color(value);
      const luminance = 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
      const ink = inkOn([r, g, b]) === "#ffffff" ? 1 : 0;
      const contrast = (Math.max(ink, luminance) + 0.05) / (Math.min(ink, luminance) + 0.05);
      expect(contrast).toBeGreaterThan(4.5);
    }
  expect(scaleFor(-2, 1, false)).toMatchObject({ low: -2, high: 2 });
  expect(scaleFor(0.2, 0.9, true)).toMatchObject({ low: 0, high: 1 });
});

test("a run of a command of one's own cannot be probed", () => {
  expect(canBeProbed('{"argv":["python","train.py"],"params":{},"version":"1"}')).toBe(false);
  expect(canBeProbed('{"model":{"argv":1},"recipe":{}}')).toBe(true);
  expect(canBeProbed('{"model":{},"recipe":{},"task":{"kind":"segment"}}')).toBe(false);
  expect(["", "null", "[1"].map(canBeProbed)).toEqual([false, false, false]);
});

test("colours of classes are a legend, and no numbers to draw", () => {
  const colours = {
    name: "legend",
    axes: [axis("class", "ground", "disc"), axis("colour", "red", "green", "blue")],
  };
  expect(isLegend({ ...colours, values: [1, 2, 3, 4, 5, 6] })).toBe(true);
  expect(isLegend(kNorms)).toBe(false);
  expect(isLegend(kCodes)).toBe(false);
});
