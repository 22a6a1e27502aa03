// SPDX-License-Identifier: Apache-2.0
import type { Real, ResourceGap, ResourceSeries, ResourcesResponse } from "../../../generated/ablate";
import { lookOf } from "../../../palette";
import type { Line, Plot } from "../../../series";

/** A chart of what a run took of its machine. */
export interface ResourcePlot {
  title: string;
  plot: Plot;
}

const kCharts: { title: string; of: string[]; labels: string[] }[] = [
  { title: "CPU", of: ["cpu"], labels: ["cores in use"] },
  { title: "memory", of: ["memory"], labels: ["resident"] },
  { title: "GPU", of: ["gpu"], labels: ["time computing"] },
  { title: "GPU memory", of: ["gpu_memory"], labels: ["taken"] },
  { title: "disk traffic", of: ["read", "written"], labels: ["read", "written"] },
  { title: "waiting for data", of: ["data_wait"], labels: ["time waiting"] },
  { title: "free disk", of: ["free"], labels: ["free"] },
];

const kBinary = ["bytes", "KiB", "MiB", "GiB", "TiB"];

/** A unit in which the largest of some values is a number that people read, and how much one of it is. */
export function unitFor(unit: string, largest: number): { name: string; size: number } {
  if (unit === "share") return { name: "%", size: 0.01 };
  if (!unit.startsWith("bytes")) return { name: unit, size: 1 };
  let power = 0;
  while (power + 1 < kBinary.length && largest >= 1024 ** (power + 1)) ++power;
  return { name: kBinary[power]! + unit.slice("bytes".length), size: 1024 ** power };
}

const numbers = (values: Real[]): number[] => values.map(Number);

/** A line that breaks where nothing was sampled. */
function lineOf(
  series: ResourceSeries,
  label: string,
  size: number,
  index: number,
  gaps: ResourceGap[],
): Line {
  const at = numbers(series.at_s);
  const [means, lows, highs] = [series.means, series.lows, series.highs].map((values) =>
    numbers(values).map((value) => value / size),
  ) as [number[], number[], number[]];
  const x: number[] = [];
  const values: (number | null)[] = [];
  const low: (number | null)[] = [];
  const high: (number | null)[] = [];
  const add = (place: number, mean: number | null, least: number | null, most: number | null): void => {
    x.push(place);
    values.push(mean);
    low.push(least);
    high.push(most);
  };
  let gap = 0;
  at.forEach((place, i) => {
    for (; gap < gaps.length && Number(gaps[gap]!.from_s) < place; ++gap)
      if (i > 0) add((at[i - 1]! + place) / 2, null, null, null);
    add(place, means[i]!, lows[i] ?? null, highs[i] ?? null);
  });
  return {
    ...{ id: series.name, label, look: lookOf(index), runs: 1, of: 1, rest: [], breaks: [] },
    ...{ notFinite: 0, points: at.length, bucketSteps: 0 },
    ...{ x, values, steps: x.map(() => null) },
    ...(lows.length > 0 ? { band: { low, high, spread: "range" as const } } : {}),
  };
}

/** The charts for which there are samples, all of one time axis. */
export function resourcePlots({ series, gaps }: ResourcesResponse): ResourcePlot[] {
  return kCharts.flatMap(({ title, of, labels }) => {
    const there = of.map((name) => series.find((one) => one.name === name));
    const present = there.filter((one) => one !== undefined);
    if (present.length === 0) return [];
    const largest = Math.max(
      ...present.flatMap((one) => numbers(one.highs.length > 0 ? one.highs : one.means)),
    );
    const unit = unitFor(present[0]!.unit, largest);
    const lines = there.flatMap((one, i) => (one ? [lineOf(one, labels[i]!, unit.size, i, gaps)] : []));
    return [{ title: `${title} (${unit.name})`, plot: { axis: "wall", unit: unit.name, zero: true, lines } }];
  });
}

/** What every program has and these samples do not: "disk traffic". */
export function notMeasured({ series }: ResourcesResponse): string[] {
  return kCharts
    .filter(({ of }) => of.some((name) => ["cpu", "memory", "read", "free"].includes(name)))
    .filter(({ of }) => !series.some(({ name }) => of.includes(name)))
    .map(({ title }) => title);
}
