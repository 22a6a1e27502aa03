// SPDX-License-Identifier: Apache-2.0
// Tables for the tests of charts.
import type { Cell, Column, Table, TableRow } from "../../../../generated/ablate";

/** A mean; with its deviation over three seeds; NaN; or a setting's text. */
export type Value = number | [mean: number, sd: number] | "NaN" | string | undefined;

const kCounts = ["params", "flops"];
const kMetrics = ["acc", "loss"];

const cellOf = (value: Value): Cell =>
  ({
    n: value === undefined ? 0 : Array.isArray(value) ? 3 : 1,
    of: 3,
    text: typeof value === "string" ? value : "",
    paper: "",
    missing: "",
    diverged: [],
    row: "",
    ...(Array.isArray(value) ? { mean: value[0], sd: value[1] } : {}),
    ...(typeof value === "number" || value === "NaN" ? { mean: value } : {}),
  }) as unknown as Cell;

/** Columns named acc or loss are metrics, params and flops counts, others settings. */
export function tableOf(columns: string[], rows: Record<string, Value[]>): Table {
  return {
    baseline: Object.keys(rows)[0] ?? "",
    columns: columns.map(
      (name): Column =>
        ({
          name,
          heading: name,
          source: name,
          unit: name === "params" ? "M" : "",
          level: "",
          per_seed: kMetrics.includes(name),
          kind: kMetrics.includes(name)
            ? "KIND_METRIC"
            : kCounts.includes(name)
              ? "KIND_COUNT"
              : "KIND_SETTING",
        }) as Column,
    ),
    rows: Object.entries(rows).map(
      ([id, values]) =>
        ({ id, label: id, group: "", baseline: "", cells: values.map(cellOf) }) as unknown as TableRow,
    ),
  } as unknown as Table;
}
