// SPDX-License-Identifier: Apache-2.0
import { plural } from "../../../../format";
import type { Axis, Frame } from "./frame";

export interface HeatCell {
  /** Places of its rows. */
  rows: number[];
  /** Rows with a value. */
  n: number;
  mean: number | undefined;
  /** Why it has no mean, in a word or two; empty: it has one. */
  none: string;
}

export interface Heat {
  across: string[];
  down: string[];
  /** cells[down][across] */
  cells: HeatCell[][];
  low: number;
  high: number;
  /** What is said of the means below the chart. */
  notes: string[];
  /** Cells have several rows, and these are not to be averaged. */
  asks: boolean;
  /** Why there is no heat map, or empty. */
  why: string;
}

/** Levels on a side: more cells than these squared are no picture. */
export const kMostSide = 40;

/** The mean of a metric where two settings meet. Over other settings only with `average`: else a cell of several rows has none. */
export function heatOf(frame: Frame, metric: Axis, across: Axis, down: Axis, average: boolean): Heat {
  const [x, y] = [frame.levels(across), frame.levels(down)];
  const heat: Heat = {
    across: x.names,
    down: y.names,
    cells: [],
    low: Infinity,
    high: -Infinity,
    notes: [],
    asks: false,
    why: "",
  };
  for (const [axis, { names }] of [[across, x] as const, [down, y] as const])
    if (names.length > kMostSide)
      heat.why = `${axis.title} has ${plural(names.length, "level")}: a heat map has ${kMostSide} on a side at most.`;
  if (heat.why) return heat;
  const values = frame.values(metric);
  heat.cells = y.names.map(() =>
    x.names.map((): HeatCell => ({ rows: [], n: 0, mean: undefined, none: "" })),
  );
  for (let i = 0; i < values.length; ++i)
    if (x.of[i]! >= 0 && y.of[i]! >= 0) heat.cells[y.of[i]!]![x.of[i]!]!.rows.push(i);
  const all = heat.cells.flat();
  for (const cell of all) fill(frame, metric, values, cell, average);
  for (const { mean } of all)
    if (mean !== undefined) {
      heat.low = Math.min(heat.low, mean);
      heat.high = Math.max(heat.high, mean);
    }
  heat.asks = !average && all.some(({ rows }) => rows.length > 1);
  heat.notes = notesOf(frame, all, across, down, average);
  return heat;
}

function fill(frame: Frame, metric: Axis, values: Float64Array, cell: HeatCell, average: boolean): void {
  const own = cell.rows.filter((row) => !Number.isNaN(values[row]!));
  const broken = cell.rows.filter((row) => frame.isBroken(metric, row)).length;
  cell.n = own.length;
  if (cell.rows.length === 0) cell.none = "no row";
  else if (broken > 0) cell.none = cell.rows.length > 1 ? `${broken} diverged` : "diverged";
  else if (own.length === 0) cell.none = "no value";
  else if (cell.rows.length > 1 && !average) cell.none = plural(cell.rows.length, "row");
  else cell.mean = own.reduce((sum, row) => sum + values[row]!, 0) / own.length;
}

function notesOf(frame: Frame, cells: HeatCell[], across: Axis, down: Axis, average: boolean): string[] {
  const notes: string[] = [];
  const several = cells.filter(({ rows }) => rows.length > 1);
  const means = cells.filter(({ mean }) => mean !== undefined);
  const others = frame.settings.filter((axis) => {
    if (axis === across || axis === down) return false;
    const { of } = frame.levels(axis);
    return several.some(({ rows }) => rows.some((row) => of[row] !== of[rows[0]!]));
  });
  const differ = others.length > 0 ? others.map(({ title }) => title).join(", ") : "no setting of this table";
  if (average && means.some(({ n }) => n > 1)) {
    const counts = means.map(({ n }) => n);
    const [least, most] = [Math.min(...counts), Math.max(...counts)];
    notes.push(
      `Each cell is the mean of ${least === most ? plural(most, "row") : `${least} to ${plural(most, "row")}`}, averaged over ${differ}.`,
    );
    if (least < most) notes.push("Cells with different numbers of rows are not averaged over the same.");
  } else if (several.length > 0 && !average)
    notes.push(`${plural(several.length, "cell")} with several rows, which differ in ${differ}.`);
  else if (several.length === 0) notes.push("Each cell is one row.");
  const part = means.filter(({ n, rows }) => n < rows.length).length;
  if (part > 0)
    notes.push(`${plural(part, "cell")} marked * ${part === 1 ? "lacks" : "lack"} values of some rows.`);
  const empty = cells.filter(({ rows }) => rows.length === 0).length;
  const missing = cells.filter(({ none }) => none === "no value").length;
  const broken = cells.filter(({ none }) => none.endsWith("diverged")).length;
  const none = [
    empty > 0 && `${empty} without a row`,
    missing > 0 && `${missing} without a value yet`,
    broken > 0 && `${broken} with a row that diverged or is NaN`,
  ].filter(Boolean);
  if (none.length > 0) notes.push(`Hatched: ${none.join(", ")}.`);
  return notes;
}
