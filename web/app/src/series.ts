// SPDX-License-Identifier: Apache-2.0
import { plain, whole, withSpread } from "./format";
import type { Real, Series } from "./generated/ablate";
import type { Look } from "./palette";

/** Points of one metric of one run, by ascending step. */
export type Points = Pick<Series, "steps" | "values">;

/** Values over a chart's steps. undefined: no point at this step, the line passes; null: a gap, the line breaks. */
export type Values = (number | null | undefined)[];

/** A stretch of a run's points that are not finite. */
export interface Break {
  run: string;
  /** The step of the first of these points, and of the first finite one after them. */
  from: number;
  back: number | null;
  value: Real;
  /** The run's last finite value before, where the break is marked; null when it began so. */
  at: number | null;
}

/**
 * One line of a chart over the shared steps: a run as it is, or the mean of several. A mean is of all its runs or it is not drawn: where
 * a run has diverged, or has ended before the others, the line breaks, and the runs go on one by one in `rest`.
 */
export interface Line {
  id: string;
  label: string;
  look: Look;
  values: Values;
  /** Of how many runs it is the mean; 1: a run as it is. */
  runs: number;
  /** How many there will be. */
  of: number;
  /** Of a mean: ± one standard deviation, and how many runs have a value at each step. */
  band?: { low: Values; high: Values };
  n?: number[];
  rest: Values[];
  breaks: Break[];
}

export interface Plot {
  steps: number[];
  lines: Line[];
}

/** A line to be: the runs whose mean it is, each with a name ("seed 1"); `of` where more will come. */
export interface Group {
  id: string;
  label: string;
  look: Look;
  runs: { name: string; series: Points }[];
  of?: number;
}

/** Lines over the union of all steps: a single run as it is, several as mean ± s.d. */
export function plotOf(groups: Group[]): Plot {
  const steps = [...new Set(groups.flatMap((g) => g.runs.flatMap((r) => r.series.steps)))].sort(
    (a, b) => a - b,
  );
  return { steps, lines: groups.map((group) => lineOf(group, steps)) };
}

function lineOf({ id, label, look, runs, of }: Group, steps: number[]): Line {
  const breaks = runs.flatMap(({ name, series }) => breaksOf(name, series));
  const line = { id, label, look, runs: runs.length, of: Math.max(of ?? 0, runs.length), rest: [], breaks };
  const [only] = runs;
  if (runs.length === 1 && only) return { ...line, values: onto(steps, only.series, false) };
  // runs are thinned each for itself, so their steps differ: between its points a run is a straight line
  const columns = runs.map(({ series }) => onto(steps, series, true));
  const values: Values = [];
  const low: Values = [];
  const high: Values = [];
  const n: number[] = [];
  for (let i = 0; i < steps.length; ++i) {
    const there = columns.map((c) => c[i]).filter((v) => typeof v === "number");
    const { mean, sd } = there.length === runs.length ? meanSd(there) : { mean: null, sd: null };
    n.push(there.length);
    values.push(mean);
    low.push(mean !== null && sd !== null ? mean - sd : null);
    high.push(mean !== null && sd !== null ? mean + sd : null);
  }
  return { ...line, values, band: { low, high }, n, rest: restOf(columns, n) };
}

/** The runs by themselves where the mean is not drawn, from and to the points where it is. */
function restOf(columns: Values[], n: number[]): Values[] {
  const ended = n.map((count) => count < columns.length);
  return columns
    .map((column) => column.map((v, i) => (ended[i] || ended[i - 1] || ended[i + 1] ? (v ?? null) : null)))
    .filter((column) => column.some((v, i) => v !== null && ended[i]));
}

function breaksOf(run: string, { steps, values }: Points): Break[] {
  const found: Break[] = [];
  let at: number | null = null;
  let present: Break | undefined;
  values.forEach((value, i) => {
    if (typeof value === "number") {
      if (present) present.back = steps[i]!;
      present = undefined;
      at = value;
    } else if (!present) {
      present = { run, from: steps[i]!, back: null, value, at };
      found.push(present);
    }
  });
  return found;
}

/** "seed 1 is NaN from step 100 on", "… from step 41 on, finite again by step 60": a thinned run has not every point. */
export function breakText({ run, from, back, value }: Break): string {
  const end = back === null ? "" : `, finite again by step ${whole(back)}`;
  return `${run} is ${plain(value)} from step ${whole(from)} on${end}`;
}

/** Mean and sample standard deviation; null where there are too few values. */
export function meanSd(values: number[]): { mean: number | null; sd: number | null } {
  if (values.length === 0) return { mean: null, sd: null };
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  if (values.length === 1) return { mean, sd: null };
  const squares = values.reduce((a, v) => a + (v - mean) ** 2, 0);
  return { mean, sd: Math.sqrt(squares / (values.length - 1)) };
}

/**
 * A run's values at `steps`, which contain its own. Between two finite points: nothing, or interpolated. NaN and infinities are gaps, up
 * to the finite points around them.
 */
function onto(steps: number[], series: Points, interpolate: boolean): Values {
  const result: Values = [];
  let next = 0; // the first own step at or after the present one
  for (const step of steps) {
    while (next < series.steps.length && series.steps[next]! < step) ++next;
    if (next === series.steps.length || (next === 0 && series.steps[0] !== step)) {
      result.push(undefined); // before its first point, or beyond its last
      continue;
    }
    const after = finite(series.values[next]);
    if (series.steps[next] === step) {
      result.push(after);
      continue;
    }
    const before = finite(series.values[next - 1]);
    if (before === null || after === null) {
      result.push(null);
    } else if (interpolate) {
      const from = series.steps[next - 1]!;
      result.push(before + ((step - from) / (series.steps[next]! - from)) * (after - before));
    } else {
      result.push(undefined);
    }
  }
  return result;
}

function finite(value: Real | undefined): number | null {
  return typeof value === "number" ? value : null;
}

/** What a line is at a step, in words: "79.12 ± 0.30, n 2", "NaN", "2 of 3 runs". */
export function valueAt(line: Line, index: number, step: number): string {
  const value = line.values[index];
  if (typeof value === "number") {
    const high = line.band?.high[index];
    const text = typeof high === "number" ? withSpread(value, high - value) : plain(value);
    return line.n ? `${text}, n ${line.n[index]}` : text;
  }
  const lost = line.breaks.find(({ from, back }) => from <= step && (back === null || step < back));
  if (lost) return line.n ? `${plain(lost.value)} in ${lost.run}` : plain(lost.value);
  const there = line.n?.[index] ?? 0;
  return there > 0 ? `${there} of ${line.runs} runs` : "–";
}

/** The newest value that the line has, and where it is. */
export function lastOf(line: Line): { index: number; value: number } | undefined {
  const index = line.values.findLastIndex((v) => typeof v === "number");
  return index < 0 ? undefined : { index, value: line.values[index]! };
}

/** "train/loss" and "val/loss" measure one quantity: "loss". */
export function quantityOf(metric: string): string {
  return metric.replace(/^[\w-]+\/(?=.)/, "");
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
