// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import type { ResourceSeries, ResourcesResponse } from "../../../generated/ablate";
import { valueAt } from "../../../series";
import { notMeasured, resourcePlots, unitFor } from "./resource_plots";

const series = (
  name: string,
  unit: string,
  means: number[],
  more: Partial<ResourceSeries> = {},
): ResourceSeries => ({
  ...{ name, unit, at_s: means.map((_, i) => 2 * (i + 1)), means, lows: [], highs: [] },
  ...more,
});
const response = (...all: ResourceSeries[]): ResourcesResponse => ({
  ...{ run: 1, why_none: "", left_out: 0, samples: 3, bucket_s: 0, series: all, gaps: [] },
});

test("a unit fits the largest value, and shares are percent", () => {
  expect(unitFor("bytes", 3 * 1024 ** 3)).toEqual({ name: "GiB", size: 1024 ** 3 });
  expect(unitFor("bytes/s", 2048)).toEqual({ name: "KiB/s", size: 1024 });
  expect(unitFor("bytes", 0)).toEqual({ name: "bytes", size: 1 });
  expect(unitFor("share", 0.5)).toEqual({ name: "%", size: 0.01 });
  expect(unitFor("cores", 4)).toEqual({ name: "cores", size: 1 });
});

test("what there are no samples of has no chart", () => {
  const plots = resourcePlots(response(series("cpu", "cores", [1, 2]), series("gpu", "share", [0.5, 1])));
  expect(plots.map(({ title }) => title)).toEqual(["CPU (cores)", "GPU (%)"]);
  expect(plots[1]!.plot.lines[0]!.values).toEqual([50, 100]);
  expect(notMeasured(response(series("cpu", "cores", [1])))).toEqual(["memory", "disk traffic", "free disk"]);
});

test("what is read and what is written share a chart and a unit", () => {
  const [disk] = resourcePlots(
    response(series("read", "bytes/s", [1024 ** 2]), series("written", "bytes/s", [512 * 1024])),
  );
  expect(disk!.title).toBe("disk traffic (MiB/s)");
  expect(disk!.plot.lines.map(({ label, values }) => [label, values])).toEqual([
    ["read", [1]],
    ["written", [0.5]],
  ]);
});

test("a line has a gap where there are no samples", () => {
  const of = { ...response(series("cpu", "cores", [1, 2, 3], { at_s: [2, 4, 100] })) };
  of.gaps = [{ from_s: 4, to_s: 98 }];
  const line = resourcePlots(of)[0]!.plot.lines[0]!;
  expect(line.values).toEqual([1, 2, null, 3]);
  expect(line.x).toEqual([2, 4, 52, 100]);
  expect(line.breaks).toEqual([]);
});

test("a bucket shows its mean, lowest and highest value", () => {
  const of = response(series("cpu", "cores", [1.5, 2], { lows: [1, 2], highs: [2, 2] }));
  const line = resourcePlots(of)[0]!.plot.lines[0]!;
  expect(line.band).toMatchObject({ low: [1, 2], high: [2, 2] });
  expect(valueAt(line, 0)).toBe("1.5000 (1 to 2)");
});
