// SPDX-License-Identifier: Apache-2.0
import type { Curve, Real } from "../generated/ablate";

/** Inclusive, in steps. */
export interface StepRange {
  from: number;
  to: number;
}

/** Points, or buckets of them, by ascending step: columns of one length. */
export interface Samples {
  steps: number[];
  values: Real[];
  /** Since the epoch, where times were asked for. */
  times: number[];
}
export interface Means extends Samples {
  /** How many points each stands for. */
  n: number[];
}

/** A stretch of a curve as one answer gave it. */
interface Part {
  /** 0: `points` has every point. */
  bucketSteps: number;
  points: Samples;
  /** A value for each bucket, the mean of its finite points; of an exact part the points themselves. */
  means: Means;
  notFinite: number[];
}

/** A curve as the page holds it: coarse as a whole, finer in zoomed ranges, exact where it was appended. */
export interface Held {
  run: number;
  name: string;
  /** Points that the run reported, stored or not. */
  said: number;
  parts: Part[];
}

const isFinite = (value: Real): boolean => typeof value === "number";

export function heldOf(curve: Curve): Held {
  return { run: curve.run, name: curve.name, said: Number(curve.said), parts: [partOf(curve)] };
}

function partOf(curve: Curve): Part {
  const points: Samples = {
    steps: curve.steps,
    values: curve.values,
    times: curve.times_ms.map(Number),
  };
  if (curve.bucket_steps === 0) return exact(points);
  return {
    bucketSteps: curve.bucket_steps,
    points,
    means: {
      steps: curve.bucket_middles,
      values: curve.bucket_means,
      times: points.times.length ? curve.bucket_middles.map((step) => timeAt(points, step)) : [],
      n: curve.bucket_points,
    },
    notFinite: curve.bucket_not_finite,
  };
}

function exact(points: Samples): Part {
  return {
    bucketSteps: 0,
    points,
    means: { ...points, n: points.steps.map(() => 1) },
    notFinite: points.values.map((value) => Number(!isFinite(value))),
  };
}

/** Between two points that are there, as the line is. */
function timeAt({ steps, times }: Samples, step: number): number {
  const after = Math.min(firstFrom(steps, step), steps.length - 1);
  const before = Math.max(0, after - 1);
  const [from, to] = [steps[before]!, steps[after]!];
  const share = to > from ? (step - from) / (to - from) : 0;
  return times[before]! + share * (times[after]! - times[before]!);
}

/** The index of the first number that is `least` or more. */
export function firstFrom(sorted: number[], least: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! < least) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Each column made into another. */
function mapped<S extends Samples>(columns: S, make: (column: unknown[], name: keyof S) => unknown[]): S {
  const entries = Object.entries(columns) as [keyof S & string, unknown[]][];
  return Object.fromEntries(entries.map(([name, column]) => [name, make(column, name)])) as unknown as S;
}

/** What lies in a range that begins and ends with buckets. */
function cut(part: Part, { from, to }: StepRange): Part {
  const within = (steps: number[]) => [firstFrom(steps, from), firstFrom(steps, to + 1)] as const;
  const samples = <S extends Samples>(columns: S): S =>
    mapped(columns, (column) => column.slice(...within(columns.steps)));
  return {
    bucketSteps: part.bucketSteps,
    points: samples(part.points),
    means: samples(part.means),
    notFinite: part.notFinite.slice(...within(part.means.steps)),
  };
}

const someOf = (part: Part): boolean => part.points.steps.length > 0;

/** The widest buckets of some curves; 1: all of them are exact. */
export function widest(curves: Held[]): number {
  return Math.max(1, ...curves.flatMap(({ parts }) => parts.map((part) => part.bucketSteps)));
}

/** The narrowest buckets that any of some curves ends with; 0: none has any. */
export function narrowest(curves: Held[]): number {
  const wide = curves.map(({ parts }) => parts.at(-1)?.bucketSteps ?? 0).filter((steps) => steps > 0);
  return wide.length > 0 ? Math.min(...wide) : 0;
}

export const isExact = (curve: Held): boolean => curve.parts.every((part) => part.bucketSteps === 0);

/** A curve that is finer in a range, whose ends are those of its buckets. */
export function withDetail(curve: Held, detail: Held, range: StepRange): Held {
  const before = { from: 0, to: range.from - 1 };
  const behind = { from: range.to + 1, to: Infinity };
  const parts = [
    ...curve.parts.map((part) => cut(part, before)),
    ...detail.parts,
    ...curve.parts.map((part) => cut(part, behind)),
  ].filter(someOf);
  return { ...curve, said: Math.max(curve.said, detail.said), parts };
}

const total = (numbers: number[]): number => numbers.reduce((a, b) => a + b, 0);

export function pointsOf(curve: Held): number {
  return total(curve.parts.map((part) => total(part.means.n)));
}
export function notFiniteOf(curve: Held): number {
  return total(curve.parts.map((part) => total(part.notFinite)));
}

/** The step from which to read on: within the last bucket, since that may have grown. */
export function nextOf({ parts }: Held): number {
  const last = parts.at(-1);
  const step = last?.points.steps.at(-1);
  return last === undefined || step === undefined ? 0 : last.bucketSteps > 0 ? step : step + 1;
}

/** A curve that has grown is held point by point up to so many points to a pixel (views/reads/curves.cc knows it too). */
const kWholeToWidth = 10;

/** The last step up to `step` at which buckets of all these curves begin. */
export function bucketBegin(curves: Held[], step: number): number {
  const wide = widest(curves);
  return Math.max(0, Math.floor(step / wide) * wide);
}

/**
 * A curve with new points, read from step `from` on, where a bucket begins. Undefined if the whole must be read again: points came before
 * that step, or there are more buckets than the chart has pixels.
 */
export function appended(curve: Held, fresh: Curve, from: number, width: number): Held | undefined {
  const bucketSteps = curve.parts.at(-1)?.bucketSteps ?? 0;
  if (fresh.bucket_steps > bucketSteps) return undefined;
  const kept = curve.parts.map((part) => cut(part, { from: 0, to: from - 1 })).filter(someOf);
  const added = partOf(fresh);
  const parts = joined(
    kept,
    fresh.bucket_steps === 0 && bucketSteps > 0 ? inBuckets(added, bucketSteps) : added,
  );
  const whole = { run: curve.run, name: curve.name, said: Number(fresh.said), parts };
  if (total(parts.map((part) => part.means.steps.length)) > (bucketSteps === 0 ? kWholeToWidth : 2) * width)
    return undefined;
  const wasComplete = pointsOf(curve) === curve.said;
  return wasComplete && pointsOf(whole) !== whole.said ? undefined : whole;
}

function joined(parts: Part[], part: Part): Part[] {
  const last = parts.at(-1);
  if (!someOf(part)) return parts;
  if (!last || last.bucketSteps !== part.bucketSteps) return [...parts, part];
  return [
    ...parts.slice(0, -1),
    {
      bucketSteps: part.bucketSteps,
      points: concat([last.points, part.points]),
      means: concat([last.means, part.means]),
      notFinite: [...last.notFinite, ...part.notFinite],
    },
  ];
}

/** As the server does it: of each bucket its first, lowest, highest and last point, and the first that is not finite. */
function inBuckets({ points }: Part, bucketSteps: number): Part {
  const { steps, values, times } = points;
  const part: Part = {
    bucketSteps,
    points: { steps: [], values: [], times: [] },
    means: { steps: [], values: [], times: [], n: [] },
    notFinite: [],
  };
  for (let first = 0, end = 0; first < steps.length; first = end) {
    const bucket = Math.floor(steps[first]! / bucketSteps);
    while (end < steps.length && Math.floor(steps[end]! / bucketSteps) === bucket) ++end;
    const all = Array.from({ length: end - first }, (_, i) => first + i);
    const finite = all.filter((i) => isFinite(values[i]!));
    const odd = all.find((i) => !isFinite(values[i]!));
    const kept = new Set([first, end - 1, ...(odd === undefined ? [] : [odd])]);
    const least = (sign: number): number =>
      finite.reduce((a, b) => (sign * Number(values[b]) < sign * Number(values[a]) ? b : a));
    if (finite.length > 0) kept.add(least(1)).add(least(-1));
    for (const i of [...kept].sort((a, b) => a - b)) {
      part.points.steps.push(steps[i]!);
      part.points.values.push(values[i]!);
      if (times.length) part.points.times.push(times[i]!);
    }
    const middle = steps[first]! + Math.floor((steps[end - 1]! - steps[first]!) / 2);
    part.means.steps.push(middle);
    part.means.values.push(
      finite.length ? total(finite.map((i) => Number(values[i]))) / finite.length : "NaN",
    );
    if (times.length) part.means.times.push(timeAt(points, middle));
    part.means.n.push(end - first);
    part.notFinite.push(end - first - finite.length);
  }
  return part;
}

function concat<S extends Samples>(all: S[]): S {
  const [first] = all;
  return all.length === 1
    ? first!
    : mapped(first!, (_, name) => all.flatMap((columns) => columns[name] as unknown[]));
}

/** The points through which a run's line goes: no extreme is missing. */
export function pointsShown({ parts }: Held): Samples {
  return concat(parts.length ? parts.map((part) => part.points) : [{ steps: [], values: [], times: [] }]);
}

/** What means over runs and smoothing are of: every point, as it is or in the mean of its bucket. */
export function meansShown({ parts }: Held): Means {
  return concat(
    parts.length ? parts.map((part) => part.means) : [{ steps: [], values: [], times: [], n: [] }],
  );
}
