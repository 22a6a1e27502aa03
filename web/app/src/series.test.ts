// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { lookOf } from "./palette";
import {
  breakText,
  extentOf,
  nearestPoint,
  plotOf,
  quantitiesOf,
  quantityOf,
  valueAt,
  withRoles,
  type Group,
} from "./series";

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

test("a single run is drawn as it is, at its own places", () => {
  const { lines } = plotOf([group(series([10, 20], [1, 2])), group(series([15], [7]))]);
  expect(lines[0]).toMatchObject({ x: [10, 20], steps: [10, 20], values: [1, 2], points: 2, bucketSteps: 0 });
  expect(lines[0]?.band).toBeUndefined();
  expect(extentOf(lines)).toEqual({ from: 10, to: 20 });
  expect(extentOf([])).toBeUndefined();
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
  expect(line?.rest.map(({ values }) => values)).toEqual([[null, 2, 3, 4]]);
  expect(valueAt(line!, 1)).toBe("3.0000 ± 1.4142, n 2");
  expect(valueAt(line!, 3)).toBe("1 of 2 runs");
});

test("where a seed has diverged the mean breaks: 79.56 of the others alone is nobody's mean", () => {
  const [line] = plotOf([
    group(series([50, 100], [70, "NaN"]), series([50, 100], [71, 79.5]), series([50, 100], [72, 79.62])),
  ]).lines;
  expect(line?.values).toEqual([71, null]);
  expect(line?.band?.high[1]).toBeNull();
  expect(line?.n).toEqual([3, 2]);
  expect(line?.rest.map(({ values }) => values)).toEqual([
    [71, 79.5],
    [72, 79.62],
  ]);
  expect(line?.notFinite).toBe(1);
  expect(line?.breaks).toEqual([
    { run: "seed 0", from: 100, back: null, value: "NaN", x: 100, xBack: null, at: 70 },
  ]);
  expect(breakText(line!.breaks[0]!)).toBe("seed 0 is NaN from step 100 on");
  expect(valueAt(line!, 1)).toBe("NaN in seed 0");
});

test("a run's values that are not finite are a gap up to its finite points, whatever steps others have", () => {
  const [line] = plotOf([
    group(series([10, 20, 30, 40], [1, "NaN", "Infinity", 4])),
    group(series([15, 35], [7, 8])),
  ]).lines;
  expect(line?.values).toEqual([1, null, null, 4]);
  expect(line?.breaks).toEqual([
    { run: "seed 0", from: 20, back: 40, value: "NaN", x: 20, xBack: 40, at: 1 },
  ]);
  expect(breakText(line!.breaks[0]!)).toBe("seed 0 is NaN from step 20 on, finite again by step 40");
  expect(valueAt(line!, 1)).toBe("NaN");
});

test("seeds that are still to come are counted", () => {
  const [line] = plotOf([{ ...group(series([10], [1])), of: 3 }]).lines;
  expect([line?.runs, line?.of]).toEqual([1, 3]);
});

test("the band is what was chosen: standard error, interval, or from the lowest seed to the highest", () => {
  const runs = group(series([10], [1]), series([10], [2]), series([10], [6]));
  const high = (spread: "se" | "ci" | "range" | "none") => plotOf([runs], { spread }).lines[0]?.band?.high[0];
  const sd = Math.sqrt(7);
  expect(high("se")).toBeCloseTo(3 + sd / Math.sqrt(3), 12);
  expect(high("ci")).toBeCloseTo(3 + (4.302652729911275 * sd) / Math.sqrt(3), 8);
  expect(high("range")).toBe(6);
  expect(high("none")).toBeNull();
  const [line] = plotOf([runs], { spread: "range" }).lines;
  expect(valueAt(line!, 0)).toBe("3 (1 to 6), n 3");
});

test("where runs come in buckets, means are of the buckets' means and not of their extremes", () => {
  const run = (mean: number) => ({
    ...{ name: "seed", series: series([0, 3, 7], [1, 100, 1]), points: 8, bucketSteps: 8 },
    means: { steps: [3], values: [mean], n: [8] },
  });
  const [line] = plotOf([{ ...group(), runs: [run(2), run(4)] }]).lines;
  expect(line).toMatchObject({ x: [3], values: [3], points: 16, bucketSteps: 8 });
});

test("a smoothed line has the raw one behind it; a mean is of smoothed runs", () => {
  const smoothing = { kind: "window", points: 3 } as const;
  const [line] = plotOf([group(series([1, 2, 3], [0, 3, 0]))], { smoothing }).lines;
  expect(line?.values).toEqual([1.5, 1, 1.5]);
  expect(line?.raw?.values).toEqual([0, 3, 0]);
  const two = group(series([1, 2, 3], [0, 3, 0]), series([1, 2, 3], [0, 9, 0]));
  const [mean] = plotOf([two], { smoothing }).lines;
  expect(mean?.values).toEqual([3, 2, 3]);
  expect(mean?.raw?.values).toEqual([0, 6, 0]);
});

test("on another axis seeds are compared where they lie there, and a mean over times has no step", () => {
  const at = (x: number[]) => ({ name: "s", series: { steps: [1, 2], values: [1, 3], x } });
  const runs = [at([0, 10]), at([0, 20])];
  const [line] = plotOf([{ ...group(), runs }], { axis: "wall" }).lines;
  expect(line).toMatchObject({ x: [0, 10, 20], values: [1, 2.5, null], n: [2, 2, 1] });
  expect(line?.steps).toEqual([null, null, null]);
});

test("the nearest point of a line is found, also beyond its ends", () => {
  const track = { x: [0, 10, 20], steps: [0, 1, 2], values: [1, 2, 3] };
  expect([-5, 4, 6, 14, 99].map((x) => nearestPoint(track, x))).toEqual([0, 0, 1, 1, 2]);
  expect(nearestPoint({ x: [], steps: [], values: [] }, 1)).toBeUndefined();
});

test("of many lines those that end highest and lowest and those chosen are strong, the others faint", () => {
  const groups: Group[] = Array.from({ length: 13 }, (_, i) => ({
    ...group(series([1], [i === 4 ? "NaN" : i])),
    id: `r${i}`,
  }));
  const plot = withRoles(plotOf(groups), new Set(["r7"]));
  const strong = plot.lines.filter((line) => line.role === "strong").map(({ id }) => id);
  expect(strong).toEqual(["r0", "r7", "r12"]);
  expect(plot.lines.filter((line) => line.role === "faint")).toHaveLength(10);
  expect(withRoles(plotOf(groups.slice(1)), new Set()).lines.some((line) => line.role)).toBe(false);
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
