// SPDX-License-Identifier: Apache-2.0
import { rangeOf, type Brush } from "./brush";
import type { Axis, Frame } from "./frame";
import { extentOf } from "./scales";

/** An axis of parallel coordinates: where each row is on it, from 0 (bottom) to 1; NaN: nowhere. */
export interface Track {
  axis: Axis;
  at: Float64Array;
  /** Of a setting: its levels are evenly spaced, in their order. */
  levels: string[] | undefined;
  low: number;
  high: number;
}

/** More levels than this stand by their numbers, if they have any. */
const kMostEven = 60;

export function trackOf(frame: Frame, axis: Axis): Track {
  if (axis.kind === "setting") {
    const { names, of, numbers } = frame.levels(axis);
    if (names.length <= kMostEven || !numbers) {
      const last = Math.max(1, names.length - 1);
      const at = Float64Array.from(of, (level) =>
        level < 0 ? NaN : names.length === 1 ? 0.5 : level / last,
      );
      return { axis, at, levels: names, low: 0, high: last };
    }
  }
  const values = frame.values(axis);
  const extent = extentOf([values]);
  const { low, high } = extent ?? { low: NaN, high: NaN };
  const at = values.map((value) => (high > low ? (value - low) / (high - low) : value * 0 + 0.5));
  return { axis, at, levels: undefined, low, high };
}

/** The range of an axis that a brush keeps, as shares; undefined: it keeps all. */
export function sharesOf(track: Track, brush: Brush | undefined): [number, number] | undefined {
  if (!brush || brush.kind === "rows") return undefined;
  if (brush.kind === "range") {
    if (track.levels) {
      const numbers = track.levels.map(Number);
      const kept = numbers.flatMap((value, i) => (value >= brush.from && value <= brush.to ? [i] : []));
      return kept.length > 0 ? around(track, kept[0]!, kept.at(-1)!) : [0, 0];
    }
    const share = (value: number): number =>
      track.high > track.low ? Math.min(1, Math.max(0, (value - track.low) / (track.high - track.low))) : 0.5;
    return [share(brush.from), share(brush.to)];
  }
  const kept = (track.levels ?? []).flatMap((level, i) => (brush.levels.includes(level) ? [i] : []));
  return kept.length > 0 ? around(track, kept[0]!, kept.at(-1)!) : undefined;
}

/** A bit beyond the levels, so that a band around one of them is seen. */
function around({ levels }: Track, first: number, last: number): [number, number] {
  const step = 1 / Math.max(1, levels!.length - 1);
  const room = Math.min(0.04, step / 3);
  return [Math.max(0, first * step - room), Math.min(1, last * step + room)];
}

/** The brush of a range of an axis, in shares; undefined: it is all of the axis. Of levels at least the nearest one is kept. */
export function brushAt(track: Track, a: number, b: number): Brush | undefined {
  const [from, to] = [Math.max(0, Math.min(a, b)), Math.min(1, Math.max(a, b))];
  const { axis, levels, low, high } = track;
  if (levels) {
    const last = Math.max(1, levels.length - 1);
    let kept = levels.filter((_, i) => i / last >= from - 1e-9 && i / last <= to + 1e-9);
    if (kept.length === levels.length) return undefined;
    if (kept.length === 0) kept = [levels[Math.round(((from + to) / 2) * last)]!];
    return { kind: "in", axis: axis.key, levels: kept };
  }
  if ((from <= 0 && to >= 1) || Number.isNaN(low)) return undefined;
  const value = (share: number): number => low + share * (high - low);
  const brush = rangeOf(axis.key, value(from), value(to));
  // the ends of the axis are values of rows: rounded, they would leave these out
  if (brush.kind !== "range") return brush;
  return {
    ...brush,
    from: from <= 0 ? Math.min(low, brush.from) : brush.from,
    to: to >= 1 ? Math.max(high, brush.to) : brush.to,
  };
}

/** How far the keys move an end of a brush. */
export function stepOf({ levels }: Track): number {
  return levels ? 1 / Math.max(1, levels.length - 1) : 0.025;
}

/** How far a point is from a line between two neighbouring axes, for the row under the pointer: looks at each row once. */
export function nearestLine(
  left: Float64Array,
  right: Float64Array,
  along: number,
  share: number,
  reach: number,
  kept: Uint8Array | undefined,
): number | undefined {
  let best: number | undefined;
  let least = reach;
  for (let i = 0; i < left.length; ++i) {
    if (kept && kept[i] === 0) continue;
    const away = Math.abs(left[i]! + (right[i]! - left[i]!) * along - share);
    if (away < least) [best, least] = [i, away];
  }
  return best;
}

/** Segments between neighbouring axes by their looks: x0 is the place of the axis, y0 and y1 are shares. */
export interface Segments {
  look: number;
  /** place, y0, y1 of each. */
  points: number[];
}

/** Places on an axis that are told apart where there are many rows. */
const kPlaces = 142;

/**
 * What is seen of many lines: those that run together are one segment, with the highest of their looks (0 and more; below 0: not drawn).
 * Looks at each row once for each pair of neighbouring axes; at most 142² segments for each.
 */
export function segmentsOf(tracks: readonly Track[], lookOf: Int8Array): Segments[] {
  const found = new Map<number, number[]>();
  for (let place = 0; place + 1 < tracks.length; ++place) {
    const [left, right] = [tracks[place]!.at, tracks[place + 1]!.at];
    const seen = new Int8Array(kPlaces * kPlaces).fill(-1);
    for (let i = 0; i < left.length; ++i) {
      const look = lookOf[i]!;
      if (look < 0 || Number.isNaN(left[i]!) || Number.isNaN(right[i]!)) continue;
      const at = Math.round(left[i]! * (kPlaces - 1)) * kPlaces + Math.round(right[i]! * (kPlaces - 1));
      if (seen[at]! < look) seen[at] = look;
    }
    for (let at = 0; at < seen.length; ++at) {
      const look = seen[at]!;
      if (look < 0) continue;
      let points = found.get(look);
      if (!points) found.set(look, (points = []));
      points.push(place, Math.floor(at / kPlaces) / (kPlaces - 1), (at % kPlaces) / (kPlaces - 1));
    }
  }
  return [...found].map(([look, points]) => ({ look, points })).sort((a, b) => a.look - b.look);
}
