// SPDX-License-Identifier: Apache-2.0
import type { AxisKind } from "./curves/axis";
import { firstFrom } from "./curves/held";
import { smoothed, type Smoothing } from "./curves/smoothing";
import { spreadOf, type Spread } from "./curves/spread";
import { plain, whole, withSpread } from "./format";
import type { Real } from "./generated/ablate";
import type { Look } from "./palette";

/** Points of one metric of one run, by ascending x; `x` where that is not the step, `n` where each stands for several. */
export interface Points {
  steps: number[];
  values: Real[];
  x?: number[];
  n?: number[];
}

/** null: a gap, the line breaks. */
export type Values = (number | null)[];

/** A line: columns of one length, by ascending x. A step is null where runs were at different ones. */
export interface Track {
  x: number[];
  steps: (number | null)[];
  values: Values;
}

/** A stretch of a run's points that are not finite. */
export interface Break {
  run: string;
  /** The step of the first of these points, and of the first finite one after them. */
  from: number;
  back: number | null;
  value: Real;
  /** Where `from` and `back` lie on the axis. */
  x: number;
  xBack: number | null;
  /** The run's last finite value before, where the break is marked; null when it began so. */
  at: number | null;
}

/**
 * A run as it is, or the mean of several. A mean is of all its runs or it is not drawn: where a run has diverged, or has ended before the
 * others, the line breaks, and the runs go on one by one in `rest`.
 */
export interface Line extends Track {
  /** Lines of one id are shown and hidden together: the runs of a row. */
  id: string;
  /** No two lines of a plot have the same. */
  label: string;
  look: Look;
  /** Of how many runs it is the mean; 1: a run as it is. */
  runs: number;
  /** How many there will be. */
  of: number;
  /** The same before it was smoothed. */
  raw?: Track;
  /** Of a mean: what its runs spread over, and how many of them have a value at each place. */
  band?: { low: Values; high: Values; spread: Spread };
  n?: number[];
  rest: Track[];
  breaks: Break[];
  /** Points that are not finite, of all its runs. */
  notFinite: number;
  /** Points that it stands for, and steps of the widest bucket that it was put into; 0: every point is drawn. */
  points: number;
  bucketSteps: number;
  /** Of many lines, a few are strong and the others faint. */
  role?: "strong" | "faint";
}

export interface Plot {
  axis: AxisKind;
  /** Of its values, where they have one. */
  unit?: string;
  /** The y axis begins at 0: of what is an amount. */
  zero?: boolean;
  lines: Line[];
}

/** A line to be: the runs whose mean it is, each with a name ("seed 1"); `of` where more will come. */
export interface Group {
  id: string;
  label: string;
  look: Look;
  runs: GroupRun[];
  of?: number;
}
export interface GroupRun {
  name: string;
  series: Points;
  /** Where `series` has only the extremes of buckets: their means. */
  means?: Points;
  notFinite?: number;
  points?: number;
  bucketSteps?: number;
}

export interface PlotOptions {
  axis?: AxisKind;
  smoothing?: Smoothing | undefined;
  spread?: Spread;
}

/** Lines over the x axis: a single run as it is, several as their mean. */
export function plotOf(groups: Group[], options: PlotOptions = {}): Plot {
  return { axis: options.axis ?? "step", lines: groups.map((group) => lineOf(group, options)) };
}

const sum = (numbers: number[]): number => numbers.reduce((a, b) => a + b, 0);

function lineOf({ id, label, look, runs, of }: Group, options: PlotOptions): Line {
  const { smoothing, spread = "sd" } = options;
  const line = {
    ...{ id, label, look, runs: runs.length, of: Math.max(of ?? 0, runs.length), rest: [] },
    breaks: runs.flatMap(({ name, series }) => breaksOf(name, series)),
    notFinite: sum(
      runs.map((run) => run.notFinite ?? run.series.values.filter((v) => finite(v) === null).length),
    ),
    points: sum(runs.map((run) => run.points ?? run.series.steps.length)),
    bucketSteps: Math.max(0, ...runs.map((run) => run.bucketSteps ?? 0)),
  };
  const smooth = ({ series, means }: GroupRun): Points => {
    const points = means ?? series;
    return smoothing ? { ...points, values: smoothed(points.values, points.n, smoothing) } : points;
  };
  const [only] = runs;
  if (runs.length === 1 && only) {
    if (!smoothing) return { ...line, ...trackOf(only.series) };
    return { ...line, ...trackOf(smooth(only)), raw: trackOf(only.series) };
  }
  const { track, ...rest } = meanOf(runs.map(smooth), spread, options.axis);
  const unsmoothed = (): Track =>
    meanOf(
      runs.map((run) => run.means ?? run.series),
      "none",
      options.axis,
    ).track;
  return { ...line, ...track, ...rest, ...(smoothing ? { raw: unsmoothed() } : {}) };
}

const placesOf = (points: Points): number[] => points.x ?? points.steps;

function trackOf(points: Points): Track {
  return { x: placesOf(points), steps: points.steps, values: points.values.map(finite) };
}

/** The mean at every place where one of the runs has a point. */
function meanOf(runs: Points[], spread: Spread, axis: AxisKind = "step") {
  const steps = new Map<number, number | null>();
  for (const run of runs)
    placesOf(run).forEach((x, i) => {
      const step = run.steps[i]!;
      steps.set(x, (steps.get(x) ?? step) === step && axis !== "wall" && axis !== "gpu" ? step : null);
    });
  const x = [...steps.keys()].sort((a, b) => a - b);
  // runs may report at different steps: between its points each is interpolated
  const columns = runs.map((run) => onto(x, run));
  const values: Values = [];
  const low: Values = [];
  const high: Values = [];
  const n: number[] = [];
  for (let i = 0; i < x.length; ++i) {
    const there = columns.map((c) => c[i]).filter((v) => typeof v === "number");
    n.push(there.length);
    const here =
      there.length === runs.length ? spreadOf(there, spread) : { mean: null, low: null, high: null };
    values.push(here.mean);
    low.push(here.low);
    high.push(here.high);
  }
  const at = x.map((place) => steps.get(place)!);
  return { track: { x, steps: at, values }, band: { low, high, spread }, n, rest: restOf(columns, n, x, at) };
}

/** The runs by themselves where the mean is not drawn, from and to the points where it is. */
function restOf(columns: Values[], n: number[], x: number[], steps: (number | null)[]): Track[] {
  const ended = n.map((count) => count < columns.length);
  return columns
    .map((column) => column.map((v, i) => (ended[i] || ended[i - 1] || ended[i + 1] ? v : null)))
    .filter((column) => column.some((v, i) => v !== null && ended[i]))
    .map((values) => ({ x, steps, values }));
}

function breaksOf(run: string, points: Points): Break[] {
  const { steps, values } = points;
  const places = placesOf(points);
  const found: Break[] = [];
  let at: number | null = null;
  let present: Break | undefined;
  values.forEach((value, i) => {
    if (typeof value === "number") {
      if (present) [present.back, present.xBack] = [steps[i]!, places[i]!];
      present = undefined;
      at = value;
    } else if (!present) {
      present = { run, from: steps[i]!, back: null, value, x: places[i]!, xBack: null, at };
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

/**
 * A run's values at places that contain its own: between two finite points interpolated, beyond its ends null. NaN and infinities are
 * gaps, up to the finite points around them.
 */
function onto(x: number[], points: Points): Values {
  const places = placesOf(points);
  const result: Values = [];
  let next = 0; // the first own point at or after the present place
  for (const place of x) {
    while (next < places.length && places[next]! < place) ++next;
    if (next === places.length || (next === 0 && places[0] !== place)) {
      result.push(null); // before its first point, or beyond its last
      continue;
    }
    const after = finite(points.values[next]);
    const before = finite(points.values[next - 1]);
    if (places[next] === place) result.push(after);
    else if (before === null || after === null) result.push(null);
    else {
      const from = places[next - 1]!;
      result.push(before + ((place - from) / (places[next]! - from)) * (after - before));
    }
  }
  return result;
}

function finite(value: Real | undefined): number | null {
  return typeof value === "number" ? value : null;
}

/** What a line is at one of its points, in words: "79.12 ± 0.30, n 2", "NaN", "2 of 3 runs". */
export function valueAt(line: Line, index: number): string {
  const value = line.values[index];
  if (typeof value === "number") {
    const low = line.band?.low[index];
    const high = line.band?.high[index];
    if (!line.n) return line.band ? spreadText(value, low, high, line.band.spread) : plain(value);
    return `${spreadText(value, low, high, line.band?.spread)}, n ${line.n[index]}`;
  }
  const x = line.x[index]!;
  const lost = line.breaks.find((b) => b.x <= x && (b.xBack === null || x < b.xBack));
  if (lost) return line.n ? `${plain(lost.value)} in ${lost.run}` : plain(lost.value);
  const there = line.n?.[index] ?? 0;
  return there > 0 ? `${there} of ${line.runs} runs` : "–";
}

/** "79.12 ± 0.30"; from the lowest seed to the highest: "79.12 (78.9 to 79.3)". */
function spreadText(mean: number, low?: number | null, high?: number | null, spread?: Spread): string {
  if (typeof low !== "number" || typeof high !== "number") return plain(mean);
  return spread === "range"
    ? `${plain(mean)} (${plain(low)} to ${plain(high)})`
    : withSpread(mean, high - mean);
}

/** The point of a line that is nearest to a place; undefined where it has none. */
export function nearestPoint({ x }: Track, place: number): number | undefined {
  if (x.length === 0) return undefined;
  const after = Math.min(firstFrom(x, place), x.length - 1);
  return after > 0 && place - x[after - 1]! < x[after]! - place ? after - 1 : after;
}

/** The newest value that the line has, and where it is. */
export function lastOf(line: Line): { index: number; value: number } | undefined {
  const index = line.values.findLastIndex((v) => typeof v === "number");
  return index < 0 ? undefined : { index, value: line.values[index]! };
}

/** From the first place of some lines to the last. */
export function extentOf(lines: Line[]): { from: number; to: number } | undefined {
  const from = Math.min(...lines.map(({ x }) => x[0] ?? Infinity));
  const to = Math.max(...lines.map(({ x }) => x.at(-1) ?? -Infinity));
  return from <= to ? { from, to } : undefined;
}

/** Up to this many lines can be told apart; of more, most are faint. */
export const kTold = 12;

/** Among many lines those chosen, and those that end highest and lowest, are strong; the others faint. */
export function withRoles(plot: Plot, chosen: ReadonlySet<string>): Plot {
  if (plot.lines.length <= kTold) return plot;
  const ends = plot.lines.flatMap((line) => {
    const end = lastOf(line);
    return end ? [{ line, value: end.value }] : [];
  });
  ends.sort((a, b) => a.value - b.value);
  const strong = new Set([ends[0]?.line, ends.at(-1)?.line]);
  return {
    ...plot,
    lines: plot.lines.map((line) => ({
      ...line,
      role: strong.has(line) || chosen.has(line.id) || line.look.strong ? "strong" : "faint",
    })),
  };
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
