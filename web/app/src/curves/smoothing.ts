// SPDX-License-Identifier: Apache-2.0
import { plural } from "../format";
import type { Real } from "../generated/ablate";

/** Off by default. `factor`: the weight that the mean keeps at each point; `points`: how many are averaged. */
export type Smoothing = { kind: "ema"; factor: number } | { kind: "window"; points: number };

export function smoothingText(smoothing: Smoothing): string {
  return smoothing.kind === "ema"
    ? `smoothed: exponential mean, factor ${smoothing.factor}`
    : `smoothed: moving mean of ${plural(smoothing.points, "point")}`;
}

/**
 * Smoothed values. `n`: how many points each value is the mean of, so that a coarse curve is smoothed like a fine one. Values that are
 * not finite stay, and smoothing restarts after them.
 */
export function smoothed(values: Real[], n: number[] | undefined, smoothing: Smoothing): Real[] {
  const result: Real[] = [];
  for (let first = 0; first < values.length;) {
    if (typeof values[first] !== "number") {
      result.push(values[first++]!);
      continue;
    }
    let end = first;
    while (end < values.length && typeof values[end] === "number") ++end;
    const piece = values.slice(first, end) as number[];
    const weights = n?.slice(first, end) ?? piece.map(() => 1);
    const smooth =
      smoothing.kind === "ema"
        ? exponential(piece, weights, smoothing.factor)
        : window(piece, weights, smoothing.points);
    for (const value of smooth) result.push(value); // too many, perhaps, to be arguments of one call
    first = end;
  }
  return result;
}

/** Without the bias towards 0 that it would begin with (Kingma and Ba, 2015). */
function exponential(values: number[], n: number[], factor: number): number[] {
  let mean = 0;
  let weight = 0;
  return values.map((value, i) => {
    const stays = factor ** n[i]!;
    mean = stays * mean + (1 - stays) * value;
    weight = stays * weight + (1 - stays);
    return mean / weight;
  });
}

/** The mean of what lies at most half a window away, in points, on either side. */
function window(values: number[], n: number[], points: number): number[] {
  const sums = [0];
  const counts = [0];
  values.forEach((value, i) => {
    sums.push(sums[i]! + value * n[i]!);
    counts.push(counts[i]! + n[i]!);
  });
  const middle = (i: number): number => (counts[i]! + counts[i + 1]!) / 2;
  let first = 0;
  let end = 0;
  return values.map((_, i) => {
    while (middle(first) < middle(i) - points / 2) ++first;
    while (end < values.length && middle(end) <= middle(i) + points / 2) ++end;
    return (sums[end]! - sums[first]!) / (counts[end]! - counts[first]!);
  });
}
