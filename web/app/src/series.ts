// SPDX-License-Identifier: Apache-2.0
import type { Real } from "./format";
import type { Look } from "./palette";

/** As the API sends it: points of one metric of one run by ascending step. */
export interface RunSeries {
  run: number;
  series: { name: string; steps: number[]; values: Real[] };
}
export interface Metrics {
  series: RunSeries[];
}

/** One line of a chart over the shared steps; null where it has no value. The band is mean ± s.d. where two values or more are there. */
export interface Line {
  id: string;
  label: string;
  look: Look;
  values: (number | null)[];
  band?: { low: (number | null)[]; high: (number | null)[] };
}

export interface Plot {
  steps: number[];
  lines: Line[];
}

/** A line to be: the runs whose mean it is. */
export interface Group {
  id: string;
  label: string;
  look: Look;
  series: RunSeries["series"][];
}

/** Lines over the union of all steps: a single run as it is, several as mean ± s.d. */
export function plotOf(groups: Group[]): Plot {
  const steps = [...new Set(groups.flatMap((g) => g.series.flatMap((s) => s.steps)))].sort((a, b) => a - b);
  return { steps, lines: groups.map((group) => lineOf(group, steps)) };
}

function lineOf({ id, label, look, series }: Group, steps: number[]): Line {
  if (series.length === 1 && series[0]) return { id, label, look, values: onto(steps, series[0], false) };
  // runs are thinned each for itself, so their steps differ: between its points a run is a straight line
  const columns = series.map((s) => onto(steps, s, true));
  const values: (number | null)[] = [];
  const low: (number | null)[] = [];
  const high: (number | null)[] = [];
  for (let i = 0; i < steps.length; ++i) {
    const there = columns.map((c) => c[i] ?? null).filter((v): v is number => v !== null);
    const { mean, sd } = meanSd(there);
    values.push(mean);
    low.push(mean !== null && sd !== null ? mean - sd : null);
    high.push(mean !== null && sd !== null ? mean + sd : null);
  }
  return { id, label, look, values, band: { low, high } };
}

/** Mean and sample standard deviation; null where there are too few values. */
export function meanSd(values: number[]): { mean: number | null; sd: number | null } {
  if (values.length === 0) return { mean: null, sd: null };
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  if (values.length === 1) return { mean, sd: null };
  const squares = values.reduce((a, v) => a + (v - mean) ** 2, 0);
  return { mean, sd: Math.sqrt(squares / (values.length - 1)) };
}

/** A run's values at `steps`, which contain its own; in between null, or interpolated. NaN and infinities are gaps. */
function onto(steps: number[], series: RunSeries["series"], interpolate: boolean): (number | null)[] {
  const result: (number | null)[] = [];
  let next = 0; // the first own step at or after the present one
  for (const step of steps) {
    while (next < series.steps.length && series.steps[next]! < step) ++next;
    const after = finite(series.values[next]);
    if (series.steps[next] === step) {
      result.push(after);
    } else {
      const before = next > 0 ? finite(series.values[next - 1]) : null;
      if (!interpolate || before === null || after === null) {
        result.push(null);
        continue;
      }
      const from = series.steps[next - 1]!;
      const share = (step - from) / (series.steps[next]! - from);
      result.push(before + share * (after - before));
    }
  }
  return result;
}

function finite(value: Real | undefined): number | null {
  return typeof value === "number" ? value : null;
}

/** "train/loss" and "val/loss" measure one quantity: "loss". */
export function quantityOf(metric: string): string {
  return metric.slice(metric.indexOf("/") + 1);
}

/** Quantities by interest: what is evaluated first, then what is trained, then the rest. */
export function quantitiesOf(metrics: Iterable<string>): Map<string, string[]> {
  const rank = (name: string): number => (name.startsWith("val/") ? 0 : name.startsWith("train/") ? 1 : 2);
  const found = new Map<string, string[]>();
  for (const name of [...new Set(metrics)].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b))) {
    const quantity = quantityOf(name);
    found.set(quantity, [...(found.get(quantity) ?? []), name]);
  }
  return found;
}
