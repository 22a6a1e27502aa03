// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { lookOf } from "./palette";
import { breakText, meanSd, plotOf, quantitiesOf, quantityOf, valueAt } from "./series";

const series = (steps: number[], values: (number | "NaN" | "Infinity")[]) => ({
  name: "val/top1",
  steps,
  values,
});
const group = (...runs: ReturnType<typeof series>[]) => ({
  id: "a",
  label: "row a",
  look: lookOf(0),
  runs: runs.map((series, i) => ({ name: `seed ${i}`, series })),
});

test("a single run is drawn as it is, through the steps of others", () => {
  const plot = plotOf([group(series([10, 20], [1, 2])), group(series([15], [7]))]);
  expect(plot.steps).toEqual([10, 15, 20]);
  expect(plot.lines[0]!.values).toEqual([1, undefined, 2]);
  expect(plot.lines[0]?.band).toBeUndefined();
});

test("seeds become a mean with a band of one sample standard deviation", () => {
  const [line] = plotOf([group(series([10], [1]), series([10], [3]))]).lines;
  expect(line?.values).toEqual([2]);
  expect(line?.band?.low[0]).toBeCloseTo(2 - Math.SQRT2);
  expect(line?.band?.high[0]).toBeCloseTo(2 + Math.SQRT2);
});

test("between the points of a thinned run its value is interpolated, beyond its end it is not invented", () => {
  const [line] = plotOf([group(series([10, 20, 30], [1, 2, 3]), series([10, 30], [1, 5]))]).lines;
  expect(line?.values).toEqual([1, 2.5, 4]);
  expect(line?.n).toEqual([2, 2, 2]);
});

test("where a seed has ended the mean ends, and the others go on one by one", () => {
  const [line] = plotOf([group(series([10, 20, 30, 40], [1, 2, 3, 4]), series([10, 20], [3, 4]))]).lines;
  expect(line?.values).toEqual([2, 3, null, null]);
  expect(line?.n).toEqual([2, 2, 1, 1]);
  expect(line?.rest).toEqual([[null, 2, 3, 4]]);
  expect(valueAt(line!, 1, 20)).toBe("3.0000 ± 1.4142, n 2");
  expect(valueAt(line!, 3, 40)).toBe("1 of 2 runs");
});

test("where a seed has diverged the mean breaks: 79.56 of the others alone is nobody's mean", () => {
  const [line] = plotOf([
    group(series([50, 100], [70, "NaN"]), series([50, 100], [71, 79.5]), series([50, 100], [72, 79.62])),
  ]).lines;
  expect(line?.values).toEqual([71, null]);
  expect(line?.band?.high[1]).toBeNull();
  expect(line?.n).toEqual([3, 2]);
  expect(line?.rest).toEqual([
    [71, 79.5],
    [72, 79.62],
  ]);
  expect(line?.breaks).toEqual([{ run: "seed 0", from: 100, back: null, value: "NaN", at: 70 }]);
  expect(breakText(line!.breaks[0]!)).toBe("seed 0 is NaN from step 100 on");
  expect(valueAt(line!, 1, 100)).toBe("NaN in seed 0");
});

test("a run's values that are not finite are a gap up to its finite points, whatever steps others have", () => {
  const [line] = plotOf([
    group(series([10, 20, 30, 40], [1, "NaN", "Infinity", 4])),
    group(series([15, 35], [7, 8])),
  ]).lines;
  expect(line?.values).toEqual([1, null, null, null, null, 4]);
  expect(line?.breaks).toEqual([{ run: "seed 0", from: 20, back: 40, value: "NaN", at: 1 }]);
  expect(breakText(line!.breaks[0]!)).toBe("seed 0 is NaN from step 20 on, finite again by step 40");
  expect(valueAt(line!, 2, 20)).toBe("NaN");
});

test("seeds that are still to come are counted", () => {
  const [line] = plotOf([{ ...group(series([10], [1])), of: 3 }]).lines;
  expect([line?.runs, line?.of]).toEqual([1, 3]);
});

test("no value has no mean, one value has no deviation", () => {
  expect(meanSd([])).toEqual({ mean: null, sd: null });
  expect(meanSd([4])).toEqual({ mean: 4, sd: null });
});

test("metrics of one quantity go together, what is evaluated first", () => {
  const quantities = quantitiesOf(["lr", "train/loss", "val/top1", "val/loss", "train/loss"]);
  expect([...quantities]).toEqual([
    ["loss", ["val/loss", "train/loss"]],
    ["top1", ["val/top1"]],
    ["lr", ["lr"]],
  ]);
});

test("a name is cut at its side's slash alone", () => {
  expect(["val/top1", "val_ema/loss", "lr", "<b>bold</b>", "val/"].map(quantityOf)).toEqual([
    "top1",
    "loss",
    "lr",
    "<b>bold</b>",
    "val/",
  ]);
});
