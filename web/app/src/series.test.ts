// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { lookOf } from "./palette";
import { meanSd, plotOf, quantitiesOf } from "./series";

const series = (steps: number[], values: (number | "NaN")[]) => ({ name: "val/top1", steps, values });
const group = (...runs: ReturnType<typeof series>[]) => ({
  id: "a",
  label: "row a",
  look: lookOf(0),
  series: runs,
});

test("a single run is drawn as it is, with gaps at the steps of others", () => {
  const plot = plotOf([group(series([10, 20], [1, 2])), group(series([15], [7]))]);
  expect(plot.steps).toEqual([10, 15, 20]);
  expect(plot.lines[0]).toMatchObject({ values: [1, null, 2] });
  expect(plot.lines[0]?.band).toBeUndefined();
});

test("seeds become a mean with a band of one sample standard deviation", () => {
  const [line] = plotOf([group(series([10], [1]), series([10], [3]))]).lines;
  expect(line?.values).toEqual([2]);
  expect(line?.band?.low[0]).toBeCloseTo(2 - Math.SQRT2);
  expect(line?.band?.high[0]).toBeCloseTo(2 + Math.SQRT2);
});

test("between the points of a thinned run its value is interpolated, beyond its end it is not invented", () => {
  const [line] = plotOf([group(series([10, 20, 30], [1, 2, 3]), series([10, 30, 40], [1, 5, 9]))]).lines;
  expect(line?.values).toEqual([1, 2.5, 4, 9]);
  expect(line?.band?.high[3]).toBeNull();
});

test("a value that is not a number is a gap", () => {
  const [line] = plotOf([group(series([10, 20], [1, "NaN"]))]).lines;
  expect(line?.values).toEqual([1, null]);
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
