// SPDX-License-Identifier: Apache-2.0
import { kAxes, type AxisKind } from "./axis";
import type { Smoothing } from "./smoothing";
import { kSpreads, type Spread } from "./spread";

/** How curves are drawn; the address keeps all of it. */
export interface CurveView {
  axis: AxisKind;
  logX: boolean;
  logY: boolean;
  smoothing: Smoothing | undefined;
  spread: Spread;
  /** The range of the x axis that is shown, in its unit; undefined: all. */
  zoom: Zoom | undefined;
}
export interface Zoom {
  from: number;
  to: number;
}

export const kLongestWindow = 100_001;

const kParameters = ["axis", "logx", "logy", "smooth", "band", "zoom"];
/** The part of the address that a view is made from. */
export const viewText = (query: URLSearchParams): string =>
  kParameters.map((name) => query.get(name) ?? "").join("\n");

/** The view in the address. Invalid parts are ignored. */
export function viewOf(query: URLSearchParams): CurveView {
  return {
    axis: oneOf(query.get("axis"), kAxes, "step"),
    logX: query.get("logx") === "1",
    logY: query.get("logy") === "1",
    smoothing: smoothingOf(query.get("smooth")),
    spread: oneOf(query.get("band"), kSpreads, "sd"),
    zoom: zoomOf(query.get("zoom")),
  };
}

function oneOf<K extends string>(text: string | null, known: Record<K, unknown>, otherwise: K): K {
  return text !== null && Object.hasOwn(known, text) ? (text as K) : otherwise;
}

function smoothingOf(text: string | null): Smoothing | undefined {
  const [, kind, number] = /^(ema|window)-(\d+(?:\.\d+)?)$/.exec(text ?? "") ?? [];
  const value = Number(number);
  if (kind === "ema" && value > 0 && value < 1) return { kind, factor: value };
  if (kind === "window" && Number.isInteger(value) && value > 1 && value <= kLongestWindow)
    return { kind, points: value };
  return undefined;
}

export function smoothingQuery(smoothing: Smoothing | undefined): string | null {
  if (!smoothing) return null;
  return smoothing.kind === "ema" ? `ema-${smoothing.factor}` : `window-${smoothing.points}`;
}

function zoomOf(text: string | null): Zoom | undefined {
  const [from, to] = (text ?? "").split("~").map((part) => (part.trim() === "" ? NaN : Number(part)));
  return from !== undefined && to !== undefined && Number.isFinite(from) && Number.isFinite(to) && from < to
    ? { from, to }
    : undefined;
}

/** With as many digits as tell its ends apart. */
export function zoomQuery(zoom: Zoom | undefined): string | null {
  if (!zoom) return null;
  const digits = Math.max(0, Math.min(9, 3 - Math.floor(Math.log10(zoom.to - zoom.from))));
  const [from, to] = [zoom.from, zoom.to].map((x) => Number(x.toFixed(digits)));
  return `${from}~${to}`;
}

/** A range `factor` times as long around the same middle; undefined: the whole axis. */
export function scaled(seen: Zoom, all: Zoom, factor: number): Zoom | undefined {
  const [middle, half] = [(seen.from + seen.to) / 2, ((seen.to - seen.from) / 2) * factor];
  return within({ from: middle - half, to: middle + half }, all);
}

/** A range moved by a quarter of its length. */
export function moved(seen: Zoom, all: Zoom, direction: 1 | -1): Zoom | undefined {
  const length = seen.to - seen.from;
  const from = Math.min(Math.max(seen.from + (direction * length) / 4, all.from), all.to - length);
  return within({ from, to: from + length }, all);
}

function within(zoom: Zoom, all: Zoom): Zoom | undefined {
  return zoom.from <= all.from && zoom.to >= all.to ? undefined : zoom;
}
