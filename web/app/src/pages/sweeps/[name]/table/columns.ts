// SPDX-License-Identifier: Apache-2.0
import type { Cell, Column, Pivot, Table } from "../../../../generated/ablate";

/** What a column of a metric may show beside its mean, in this order. */
export const kParts = ["sd", "n", "delta", "paper", "interval"] as const;
export type Part = (typeof kParts)[number];
export type Parts = ReadonlySet<Part>;

/** Whether its cells have a value for each seed. */
export function isSampled(column: Column): boolean {
  return column.kind === "KIND_METRIC" || column.per_seed;
}

/** Whether rows are compared with a baseline, of the table or of their groups. */
export function compares(table: Table): boolean {
  return table.baseline !== "" || Object.keys(table.baselines).length > 0;
}

/** What stands behind a column's value, each in a cell of its own. */
export function partsOf(column: Column, table: Table, parts: Parts): Part[] {
  if (column.kind === "KIND_SETTING" || column.kind === "KIND_PRINTED") return [];
  const metric = isSampled(column);
  const there: Record<Part, boolean> = {
    sd: false, // in the value's own
    n: metric,
    delta: metric && compares(table),
    paper: column.has_paper,
    interval: metric,
  };
  const order: Part[] = ["interval", "n", "delta", "paper"];
  return order.filter((part) => there[part] && parts.has(part));
}

export function headingOf(column: Column, pivot?: Pivot): string {
  const heading = column.unit ? `${column.heading} (${column.unit})` : column.heading;
  return column.level ? `${levelsOf(column, pivot)}: ${heading}` : heading;
}

/** "kernel=dot, groups=2": the levels that a column of a pivoted table is of, with their factors; empty: it is of all. */
export function levelsOf({ level }: Column, pivot: Pivot | undefined): string {
  const factors = (pivot?.by ?? "").split(", ").map((key) => key.split(".").at(-1));
  const levels = level.split(", ");
  if (level === "" || factors[0] === "" || factors.length !== levels.length) return level; // a level may have a comma
  return levels.map((one, i) => `${factors[i]}=${one}`).join(", ");
}

export function numeric(cell: Cell | undefined): number | undefined {
  return typeof cell?.mean === "number" ? cell.mean : undefined;
}

const kUnitFactor: Record<string, number> = { M: 1e6, G: 1e9 };

/** A value in the unit that its column is shown in. */
export function inUnit(value: number, column: Column): number {
  return value / (kUnitFactor[column.unit] ?? 1);
}

/** "95 %": of a table's intervals. */
export function levelOf(table: Table): string {
  const alpha = Number(table.compare?.alpha ?? 0.05);
  return `${Number((100 * (1 - alpha)).toPrecision(4))} %`;
}
