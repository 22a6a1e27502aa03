// SPDX-License-Identifier: Apache-2.0
import type { Table } from "../../../../generated/ablate";

/** In which form the table is shown, as the address has it: `?pivot=groups,layout`, `?form=rows`, or as its file says. */
export interface Form {
  /** Factors whose levels lie along the columns, picked here; none: the file's, if it has any. */
  picked: readonly string[];
  /** A line for each row, though the file asks for a pivot. */
  asRows: boolean;
}

export function formOf(query: URLSearchParams): Form {
  const picked = (query.get("pivot") ?? "").split(",").filter(Boolean);
  return { picked, asRows: picked.length === 0 && query.get("form") === "rows" };
}

/** What to change of the address for a form. What names columns goes: they are others. */
export function withForm({ picked, asRows }: Form): Record<string, string | string[] | null> {
  return { pivot: picked.join(",") || null, form: asRows ? "rows" : null, sort: null, without: [] };
}

/** Whether the table is pivoted, by factors that were picked here or as its file asks. */
export function isPivoted(table: Table | undefined, { picked, asRows }: Form): boolean {
  return picked.length > 0 || (table?.pivot !== undefined && !asRows);
}
