// SPDX-License-Identifier: Apache-2.0
import type { FoundArray } from "./found";

/** How an array is drawn: lines over an axis, or a map of two. The other axes are chosen. */
export type Shape =
  { kind: "lines"; x: number; each: number | undefined } | { kind: "map"; rows: number; columns: number };

/** Lines that can be told apart. */
const kMostLines = 7;

export function shapeOf({ axes }: FoundArray): Shape {
  const last = axes.length - 1;
  const [a, b] = [axes[last - 1], axes[last]];
  if (!a) return { kind: "lines", x: last, each: undefined };
  const same = a.places.join("\n") === b!.places.join("\n");
  const image = a.name === "row" && b!.name === "column";
  if (!same && !image && b!.places.length <= kMostLines) return { kind: "lines", x: last - 1, each: last };
  return { kind: "map", rows: last - 1, columns: last };
}

/** The axes of which one place is chosen. */
export function chosenAxes(array: FoundArray, shape: Shape): number[] {
  const drawn = shape.kind === "lines" ? [shape.x, shape.each] : [shape.rows, shape.columns];
  return array.axes.flatMap((_, i) => (drawn.includes(i) ? [] : [i]));
}

/** The number at a place of each axis. */
export function valueOf({ axes, values }: FoundArray, at: number[]): number {
  return values[axes.reduce((index, { places }, i) => index * places.length + (at[i] ?? 0), 0)] ?? NaN;
}

/** What is drawn, as rows and columns with names; a single line is one column. */
export interface Grid {
  rowName: string;
  rows: string[];
  columnName: string;
  columns: string[];
  /** Row by row. */
  values: number[][];
}

/** `at`: the places that are chosen, by axis. */
export function gridOf(array: FoundArray, shape: Shape, at: number[]): Grid {
  const [rowAxis, columnAxis] = shape.kind === "lines" ? [shape.x, shape.each] : [shape.rows, shape.columns];
  const rows = array.axes[rowAxis]!;
  const columns = columnAxis === undefined ? undefined : array.axes[columnAxis]!;
  return {
    rowName: rows.name,
    rows: rows.places,
    columnName: columns?.name ?? "",
    columns: columns?.places ?? [array.name],
    values: rows.places.map((_, row) =>
      (columns?.places ?? [""]).map((_, column) => {
        const place = [...at];
        place[rowAxis] = row;
        if (columnAxis !== undefined) place[columnAxis] = column;
        return valueOf(array, place);
      }),
    ),
  };
}

/** The lowest and the highest finite number. */
export function rangeOf(values: number[]): [number, number] | undefined {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return low <= high ? [low, high] : undefined;
}

/** Round numbers from at or below `low` to at or above `high`, about so many. */
export function ticksOf(low: number, high: number, about: number): number[] {
  const span = high - low || Math.abs(high) || 1;
  const raw = span / about;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5, 10].find((one) => one * power >= raw * 0.999) ?? 10);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil(high / step - 1e-9));
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}
