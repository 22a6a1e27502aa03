// SPDX-License-Identifier: Apache-2.0
import { plain } from "../../../../format";
import type { Frame } from "./frame";

/** Which rows are kept: those in a range of numbers, those at some levels of a setting, or some by their ids. */
export type Brush =
  | { kind: "range"; axis: string; from: number; to: number }
  | { kind: "in"; axis: string; levels: string[] }
  | { kind: "rows"; ids: string[] };

const encode = (part: string): string => encodeURIComponent(part).replaceAll("~", "%7E");

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** `?brush=` once for each; rows have to pass them all. */
export function brushText(brush: Brush): string {
  const parts =
    brush.kind === "range"
      ? [brush.axis, String(brush.from), String(brush.to)]
      : brush.kind === "in"
        ? [brush.axis, ...brush.levels]
        : brush.ids;
  return [brush.kind, ...parts.map(encode)].join("~");
}

/** Undefined: the text says no brush. */
export function brushIn(text: string): Brush | undefined {
  const [kind, ...parts] = text.split("~");
  const [axis, ...rest] = parts.map(decode);
  if (axis === undefined || axis === "") return undefined;
  if (kind === "rows") return { kind, ids: [axis, ...rest] };
  if (kind === "in" && rest.length > 0) return { kind, axis, levels: rest };
  const [from, to] = rest.map(Number);
  if (kind !== "range" || rest.length !== 2 || !Number.isFinite(from) || !Number.isFinite(to))
    return undefined;
  return { kind, axis, from: Math.min(from!, to!), to: Math.max(from!, to!) };
}

export function brushesIn(query: URLSearchParams): Brush[] {
  return query.getAll("brush").flatMap((text) => brushIn(text) ?? []);
}

const axisOf = (brush: Brush): string => (brush.kind === "rows" ? "" : brush.axis);

/** What brushes an axis, or the rows by their ids (""). */
export function brushOf(brushes: readonly Brush[], axis: string): Brush | undefined {
  return brushes.find((brush) => axisOf(brush) === axis);
}

/** `brush` in place of what brushes its axis now; undefined: nothing does. As the address has them. */
export function withBrush(brushes: readonly Brush[], axis: string, brush: Brush | undefined): string[] {
  const others = brushes.filter((other) => axisOf(other) !== axis);
  return [...others, ...(brush ? [brush] : [])].map(brushText);
}

/** Brushes of an axis that the table does not have. They keep all rows. */
export function unknownIn(frame: Frame, brushes: readonly Brush[]): string[] {
  return brushes.flatMap((brush) => (brush.kind !== "rows" && !frame.axis(brush.axis) ? [brush.axis] : []));
}

/** Of each row whether all brushes keep it (1). Looks at columns of numbers: once at each row for each brush. */
export function keptBy(frame: Frame, brushes: readonly Brush[]): Uint8Array {
  const kept = new Uint8Array(frame.rows.length).fill(1);
  for (const brush of brushes) {
    if (brush.kind === "rows") {
      const ids = new Set(brush.ids);
      frame.rows.forEach(({ id }, i) => (kept[i]! &= Number(ids.has(id))));
      continue;
    }
    const axis = frame.axis(brush.axis);
    if (!axis) continue;
    if (brush.kind === "in") {
      if (axis.kind !== "setting") continue;
      const { names, of } = frame.levels(axis);
      const wanted = names.map((name) => brush.levels.includes(name));
      for (let i = 0; i < kept.length; ++i) if (of[i]! < 0 || !wanted[of[i]!]) kept[i] = 0;
      continue;
    }
    const values = frame.values(axis);
    for (let i = 0; i < kept.length; ++i)
      if (!(values[i]! >= brush.from && values[i]! <= brush.to)) kept[i] = 0;
  }
  return kept;
}

export function countKept(kept: Uint8Array): number {
  let count = 0;
  for (let i = 0; i < kept.length; ++i) count += kept[i]!;
  return count;
}

/** "top-1 from 78 to 80; kernel dot, gaussian": for people. */
export function inWords(frame: Frame | undefined, brushes: readonly Brush[]): string {
  return brushes
    .map((brush) => {
      if (brush.kind === "rows") return `${brush.ids.length === 1 ? "row" : "rows"} ${brush.ids.join(", ")}`;
      const axis = frame?.axis(brush.axis);
      const title = axis?.title ?? brush.axis;
      if (brush.kind === "in") return `${title} ${brush.levels.join(", ")}`;
      return `${title} from ${plain(brush.from)} to ${plain(brush.to)}`;
    })
    .join("; ");
}

/** A range with as many digits as tell its ends apart. */
export function rangeOf(axis: string, from: number, to: number): Brush {
  const [low, high] = [Math.min(from, to), Math.max(from, to)];
  const digits = Math.max(0, Math.min(12, 3 - Math.floor(Math.log10(high - low || Math.abs(high) || 1))));
  return { kind: "range", axis, from: Number(low.toFixed(digits)), to: Number(high.toFixed(digits)) };
}
