// SPDX-License-Identifier: Apache-2.0

/** What a band shows of several runs beside their mean. */
export type Spread = "sd" | "se" | "ci" | "range" | "none";

export const kSpreads: Record<Spread, string> = {
  sd: "± one standard deviation",
  se: "± 1 standard error",
  ci: "95 % confidence interval (t)",
  range: "lowest to highest seed",
  none: "no band",
};

export interface Spreaded {
  mean: number | null;
  /** null: of one value nothing is known of how far others would be. */
  low: number | null;
  high: number | null;
}

/** Mean and sample standard deviation; null where there are too few values. */
export function meanSd(values: number[]): { mean: number | null; sd: number | null } {
  if (values.length === 0) return { mean: null, sd: null };
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  if (values.length === 1) return { mean, sd: null };
  const squares = values.reduce((a, v) => a + (v - mean) ** 2, 0);
  return { mean, sd: Math.sqrt(squares / (values.length - 1)) };
}

export function spreadOf(values: number[], spread: Spread): Spreaded {
  const { mean, sd } = meanSd(values);
  if (mean === null || sd === null || spread === "none") return { mean, low: null, high: null };
  if (spread === "range") return { mean, low: Math.min(...values), high: Math.max(...values) };
  const n = values.length;
  const half = { sd: 1, se: 1 / Math.sqrt(n), ci: t95(n - 1) / Math.sqrt(n) }[spread] * sd;
  return { mean, low: mean - half, high: mean + half };
}

const kQuantiles = new Map<number, number>();

/**
 * t(0.975, degrees): where Student's distribution of a whole number of degrees of freedom has 95 % between ±t. Of the finite series of
 * Abramowitz and Stegun, 26.7.3 and 26.7.4, solved by halving.
 */
export function t95(degrees: number): number {
  const known = kQuantiles.get(degrees);
  if (known !== undefined) return known;
  let low = 0;
  let high = Math.PI / 2;
  for (let i = 0; i < 60; ++i) {
    const theta = (low + high) / 2; // tan θ = t / √degrees
    if (within(theta, degrees) < 0.95) low = theta;
    else high = theta;
  }
  const t = Math.tan((low + high) / 2) * Math.sqrt(degrees);
  kQuantiles.set(degrees, t);
  return t;
}

/** The share between ±t. */
function within(theta: number, degrees: number): number {
  const [sin, cos] = [Math.sin(theta), Math.cos(theta)];
  const odd = degrees % 2 === 1;
  let term = odd ? cos : 1;
  let sum = degrees === 1 ? 0 : term;
  for (let k = odd ? 3 : 2; k < degrees - 1; k += 2) {
    term *= cos * cos * ((k - 1) / k);
    sum += term;
  }
  return odd ? (2 / Math.PI) * (theta + sin * sum) : sin * sum;
}
