// SPDX-License-Identifier: Apache-2.0

type Rgb = [number, number, number];

/** cividis, which colour-blind readers see as others do: dark is low. */
const kRising: Rgb[] = [
  [0, 34, 78],
  [53, 69, 108],
  [102, 105, 112],
  [148, 142, 119],
  [200, 184, 102],
  [254, 232, 56],
];
/** Blue below zero, orange above it. */
const kBothSides: Rgb[] = [
  [33, 102, 172],
  [146, 197, 222],
  [247, 247, 247],
  [253, 184, 99],
  [179, 88, 6],
];

/** Colours for numbers from `low` to `high`. */
export interface Scale {
  low: number;
  high: number;
  color: (value: number) => Rgb;
  /** The scale as a CSS background, from low to high. */
  gradient: string;
}

/** Around zero where there are numbers on both sides of it. `whole`: similarities, from 0 to 1 or from -1 to 1. */
export function scaleFor(low: number, high: number, whole: boolean): Scale {
  const both = low < 0 && high > 0;
  const most = Math.max(-low, high);
  if (both) [low, high] = [-most, most];
  else if (low > 0 && low < high / 100) low = 0;
  if (whole && low >= -1 && high <= 1) [low, high] = [low < 0 ? -1 : 0, 1];
  const stops = low < 0 && high > 0 ? kBothSides : kRising;
  return {
    low,
    high,
    color: (value) => mix(stops, high > low ? (value - low) / (high - low) : 0.5),
    gradient: `linear-gradient(to right, ${stops.map((stop) => css(stop)).join(", ")})`,
  };
}

function mix(stops: Rgb[], share: number): Rgb {
  const at = Math.min(1, Math.max(0, share)) * (stops.length - 1);
  const i = Math.min(stops.length - 2, Math.floor(at));
  const [a, b] = [stops[i]!, stops[i + 1]!];
  return a.map((from, channel) => Math.round(from + (b[channel]! - from) * (at - i))) as Rgb;
}

export const css = ([r, g, b]: Rgb): string => `rgb(${r}, ${g}, ${b})`;

/** Black or white, whichever is read better on a colour: 4.5:1 at least. */
export function inkOn(color: Rgb): string {
  const [r, g, b] = color.map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as Rgb;
  const luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  return 1.05 / (luminance + 0.05) >= (luminance + 0.05) / 0.05 ? "#ffffff" : "#000000";
}
