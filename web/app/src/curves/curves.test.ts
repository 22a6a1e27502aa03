// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import type { Curve, CurveRun, Real } from "../generated/ablate";
import { lookOf } from "../palette";
import { plotOf } from "../series";
import { scaleOf, whyNot } from "./axis";
import { csvOf, fileName } from "./csv";
import {
  appended,
  bucketBegin,
  heldOf,
  isExact,
  meansShown,
  narrowest,
  nextOf,
  notFiniteOf,
  pointsOf,
  pointsShown,
  withDetail,
} from "./held";
import { nearLines } from "./nearest";
import { rangeToRead } from "./read";
import { smoothed } from "./smoothing";
import { meanSd, spreadOf, t95 } from "./spread";
import { moved, scaled, smoothingQuery, viewOf, zoomQuery } from "./view";

const exactCurve = (steps: number[], values: Real[] = steps, said = steps.length): Curve => ({
  run: 1,
  name: "loss",
  said: String(said),
  points: steps.length,
  not_finite: values.filter((v) => typeof v !== "number").length,
  bucket_steps: 0,
  steps,
  values,
  times_ms: [],
  bucket_middles: [],
  bucket_points: [],
  bucket_not_finite: [],
  bucket_means: [],
});
/** Of points at every step, whose values are their steps. */
const bucketedCurve = (from: number, to: number, width: number): Curve => {
  const starts = Array.from({ length: (to - from) / width }, (_, i) => from + i * width);
  return {
    ...exactCurve(starts.flatMap((s) => [s, s + width - 1])),
    said: String(to),
    points: to - from,
    bucket_steps: width,
    bucket_middles: starts.map((s) => s + Math.floor((width - 1) / 2)),
    bucket_points: starts.map(() => width),
    bucket_not_finite: starts.map(() => 0),
    bucket_means: starts.map((s) => s + (width - 1) / 2),
  };
};
const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

test("t quantiles are those of the tables, of few degrees of freedom too", () => {
  // scipy.stats.t.ppf(0.975, n)
  const known: [number, number][] = [
    [1, 12.706204736174694],
    [2, 4.302652729749462],
    [3, 3.1824463052837078],
    [4, 2.7764451051977934],
    [5, 2.5705818356363146],
    [9, 2.262157162798205],
    [30, 2.0422724563012378],
    [399, 1.965927295920882],
  ];
  for (const [degrees, t] of known) expect(t95(degrees)).toBeCloseTo(t, 7);
});

test("no value has no mean, one value has no deviation and no band", () => {
  expect(meanSd([])).toEqual({ mean: null, sd: null });
  expect(meanSd([4])).toEqual({ mean: 4, sd: null });
  for (const spread of ["sd", "se", "ci", "range"] as const)
    expect(spreadOf([4], spread)).toEqual({ mean: 4, low: null, high: null });
});

test("an exponential mean begins at the first value, and begins anew behind what is not finite", () => {
  const ema = (values: Real[], n?: number[]) => smoothed(values, n, { kind: "ema", factor: 0.5 });
  expect(ema([4, 4, 4])).toEqual([4, 4, 4]);
  expect(ema([0, 3])).toEqual([0, 2]);
  expect(ema([0, "NaN", 3, "Infinity"])).toEqual([0, "NaN", 3, "Infinity"]);
  expect(ema([1, 5], [2, 2])[1]).toBeCloseTo(Number(ema([1, 1, 5, 5]).at(-1)), 12);
});

test("a window counts points, not buckets", () => {
  const window = (values: Real[], points: number, n?: number[]) =>
    smoothed(values, n, { kind: "window", points });
  expect(window([1, 2, 6], 3)).toEqual([1.5, 3, 4]);
  expect(window([1, 2, 6], 3, [8, 8, 8])).toEqual([1, 2, 6]);
});

test("the address holds the view, and what it says wrongly counts as not said", () => {
  const view = viewOf(new URLSearchParams("axis=wall&logy=1&smooth=ema-0.9&band=ci&zoom=-1.5~20"));
  expect(view).toEqual({
    ...{ axis: "wall", logX: false, logY: true, smoothing: { kind: "ema", factor: 0.9 }, spread: "ci" },
    zoom: { from: -1.5, to: 20 },
  });
  expect([smoothingQuery(view.smoothing), zoomQuery(view.zoom)]).toEqual(["ema-0.9", "-1.5~20"]);
  for (const wrong of [
    "axis=constructor",
    "smooth=ema-1",
    "smooth=window-1",
    "smooth=window-1e9",
    "zoom=~5",
    "zoom=5~1",
    "zoom=1~Infinity",
  ])
    expect(viewOf(new URLSearchParams(wrong))).toEqual(viewOf(new URLSearchParams()));
});

test("zooming keeps the middle, moving keeps the length, and all is no zoom", () => {
  const all = { from: 0, to: 100 };
  expect(scaled(all, all, 0.5)).toEqual({ from: 25, to: 75 });
  expect(scaled({ from: 25, to: 75 }, all, 2)).toBeUndefined();
  expect(moved({ from: 70, to: 90 }, all, 1)).toEqual({ from: 75, to: 95 });
  expect(moved({ from: 90, to: 100 }, all, 1)).toEqual({ from: 90, to: 100 });
  expect(zoomQuery({ from: 0.123456, to: 0.12349 })).toBe("0.123456~0.12349");
});

const run: CurveRun = {
  run: 1,
  steps_per_epoch: 50,
  why_no_epochs: "",
  why_no_images: "no recipe.batch in the configuration",
  gpus: 2,
  why_no_gpu_time: "",
  attempts: [{ started_ms: "1000", ended_ms: "3000" }, { started_ms: "10000" }],
};

test("an axis is known of a run, or why it is not", () => {
  const at = (axis: Parameters<typeof scaleOf>[0], step: number, time: number) => {
    const scale = scaleOf(axis, run);
    return typeof scale === "string" ? scale : scale(step, time);
  };
  expect(at("epoch", 75, 0)).toBe(1.5);
  expect(at("wall", 0, 12_000)).toBe(11);
  expect(at("gpu", 0, 12_000)).toBe(8);
  expect(at("gpu", 0, 5_000)).toBe(4);
  expect(at("images", 1, 0)).toBe("no recipe.batch in the configuration");
  expect(whyNot("images", [run])).toBe("no recipe.batch in the configuration");
  expect(whyNot("images", [run, { ...run, images_per_step: 8 }])).toBeUndefined();
});

test("a curve that is zoomed into is exact there, and every point is counted once", () => {
  const held = heldOf(bucketedCurve(0, 64, 8));
  const fine = withDetail(held, heldOf(exactCurve(range(16, 32), undefined, 64)), { from: 16, to: 31 });
  expect(pointsOf(fine)).toBe(64);
  expect(pointsShown(fine).steps.slice(2, 22)).toEqual([8, 15, ...range(16, 32), 32, 39]);
  expect(meansShown(fine).n).toEqual([8, 8, ...range(16, 32).map(() => 1), 8, 8, 8, 8]);
  expect([isExact(held), isExact(fine)]).toEqual([false, false]);
});

test("the steps to read are whole buckets around what is seen, and none where every point is there", () => {
  const curve = heldOf(bucketedCurve(0, 1024, 8));
  const at = ({ steps }: { steps: number[] }) => ({ curve, x: steps, steps });
  expect(rangeToRead([at(pointsShown(curve))], { from: 100, to: 130 })).toEqual({ from: 96, to: 135 });
  expect(rangeToRead([at(pointsShown(curve))], { from: 1000, to: 5000 })).toEqual({
    from: 992,
    to: Infinity,
  });
  expect(rangeToRead([at(pointsShown(curve))], undefined)).toBeUndefined();
  const exact = heldOf(exactCurve(range(0, 100)));
  expect(
    rangeToRead([{ curve: exact, x: range(0, 100), steps: range(0, 100) }], { from: 1, to: 5 }),
  ).toBeUndefined();
});

test("what is appended is put into the same buckets as what is there", () => {
  const held = heldOf(bucketedCurve(0, 60, 4));
  const from = bucketBegin([held], nextOf(held));
  expect(from).toBe(56);
  const whole = appended(held, exactCurve(range(56, 64), undefined, 64), from, 100);
  expect(whole && pointsShown(whole)).toEqual(pointsShown(heldOf(bucketedCurve(0, 64, 4))));
  expect(whole && meansShown(whole).values).toEqual(meansShown(heldOf(bucketedCurve(0, 64, 4))).values);
});

test("much that is appended to a coarse curve may come in buckets as wide", () => {
  const held = heldOf(bucketedCurve(0, 60, 4));
  const whole = appended(held, { ...bucketedCurve(56, 128, 4), said: "128" }, 56, 100);
  expect(whole && pointsOf(whole)).toBe(128);
  expect(appended(held, { ...bucketedCurve(56, 128, 8), said: "128" }, 56, 100)).toBeUndefined();
});

test("what is read on comes in the narrowest buckets that are held", () => {
  const exact = heldOf(exactCurve(range(0, 10)));
  expect(narrowest([exact])).toBe(0);
  expect(narrowest([exact, heldOf(bucketedCurve(0, 60, 8)), heldOf(bucketedCurve(0, 60, 4))])).toBe(4);
});

test("what is appended is not taken where points came before, or there are too many", () => {
  const held = heldOf(exactCurve(range(0, 10)));
  expect(bucketBegin([held], nextOf(held))).toBe(10);
  expect(appended(held, exactCurve([10], [1], 11), 10, 100)?.parts).toHaveLength(1);
  expect(appended(held, exactCurve([10], [1], 12), 10, 100)).toBeUndefined();
  expect(appended(held, exactCurve([10], [1], 11), 10, 1)).toBeUndefined();
  expect(appended(held, { ...exactCurve([10], [1], 11), bucket_steps: 4 }, 10, 100)).toBeUndefined();
});

test("buckets that are made here keep extremes and mark what is not finite", () => {
  const held = heldOf(bucketedCurve(0, 8, 8));
  const values: Real[] = [5, 9, 1, "NaN", 6, 6, "Infinity", 6];
  const whole = appended(held, exactCurve(range(8, 16), values, 16), 8, 100);
  expect(whole && pointsShown(whole).steps).toEqual([0, 7, 8, 9, 10, 11, 15]);
  expect(whole && meansShown(whole).values[1]).toBe(5.5);
  expect(whole && notFiniteOf(whole)).toBe(2);
});

const line = (label: string, values: Real[]) => ({
  id: label,
  label,
  look: lookOf(0),
  runs: [{ name: label, series: { steps: range(0, values.length), values } }],
});

test("lines are sorted by how near they are to the cursor", () => {
  const { lines } = plotOf([line("far", [90]), line("near", [12]), line("nan", ["NaN"])]);
  const cursor = { x: 0, left: 0, top: 10, width: 100, toLeft: (x: number) => x, toTop: (y: number) => y };
  expect(nearLines(lines, cursor).map((near) => near.line.label)).toEqual(["near", "far", "nan"]);
  expect(nearLines(lines, { ...cursor, x: 500, left: 500 })).toEqual([]);
});

test("names in CSV are quoted, and none is a formula", () => {
  const plot = plotOf([line('=1+2,"x"', [0.1, "NaN"])]);
  expect(csvOf("loss", plot, plot.lines, undefined)).toBe(
    'metric,line,step,value\r\nloss,"\'=1+2,""x""",0,0.1\r\nloss,"\'=1+2,""x""",1,\r\n',
  );
});

test("CSV has what is seen: the stretch, and the raw value beside the smoothed", () => {
  const plot = plotOf([line("a", [0, 3, 0])], { smoothing: { kind: "window", points: 3 } });
  expect(csvOf("loss", plot, plot.lines, { from: 1, to: 2 })).toBe(
    "metric,line,step,value,smoothed\r\nloss,a,1,3,1\r\nloss,a,2,0,1.5\r\n",
  );
});

test("a file is called by letters, digits and single dashes", () => {
  expect(fileName("Rows by 8 axes, coloured by top-1 (%)")).toBe("Rows-by-8-axes-coloured-by-top-1");
  expect(fileName("../val/top1 - a")).toBe("val-top1-a");
  expect(fileName(`${"x".repeat(79)} (%)`)).toBe("x".repeat(79));
});
