// SPDX-License-Identifier: Apache-2.0

/** "#1d5fbf" as shares of red, green and blue. */
function channels(hex: string): [number, number, number] {
  const text = hex.trim().replace("#", "");
  const pairs = text.length === 3 ? [...text].map((digit) => digit + digit) : text.match(/../g)!;
  return pairs.map((pair) => Number.parseInt(pair, 16) / 255) as [number, number, number];
}

/** Relative luminance by WCAG. */
function luminance(hex: string): number {
  const [r, g, b] = channels(hex).map((share) =>
    share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4,
  ) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** From 1 to 21. */
export function contrast(a: string, b: string): number {
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

/** Black or white, whichever is read more easily on a colour: 4.5:1 and more on any. */
export function inkOn(hex: string): "#000000" | "#ffffff" {
  return contrast(hex, "#000000") >= contrast(hex, "#ffffff") ? "#000000" : "#ffffff";
}

/** The colour of a share of the scale, between its stops. */
export function rampAt(stops: readonly string[], share: number): string {
  const place = Math.min(1, Math.max(0, share)) * (stops.length - 1);
  const from = Math.min(stops.length - 2, Math.floor(place));
  const [a, b] = [channels(stops[from]!), channels(stops[from + 1]!)];
  return `#${a
    .map((channel, i) => Math.round((channel + (b[i]! - channel) * (place - from)) * 255))
    .map((value) => value.toString(16).padStart(2, "0"))
    .join("")}`;
}

/** The share of a value in the scale's range; the middle, where all values are equal. */
export function shareOf(value: number, low: number, high: number): number {
  return high > low ? (value - low) / (high - low) : 0.5;
}
