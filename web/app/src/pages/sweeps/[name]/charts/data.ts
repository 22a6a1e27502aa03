// SPDX-License-Identifier: Apache-2.0
import { csvText } from "../../../../curves/csv";
import { rowName } from "../../../../format";
import type { Axis, Frame } from "./frame";

/** A text, or a number with all of its digits and as it is shown. */
export type Datum = string | readonly [value: number | undefined, text: string];

/** A chart's numbers as a table: the first column names the line. */
export interface DataTable {
  head: string[];
  rows: Datum[][];
  /** As a file: undefined, the same. */
  file?: DataTable;
}

/** A number where there is one. */
export function datum(frame: Frame, axis: Axis, value: number | undefined): Exclude<Datum, string> {
  const is = value !== undefined && !Number.isNaN(value);
  return is ? [value, frame.text(axis, value)] : [undefined, "–"];
}

const kNumber = /^-?\d+(\.\d+)?(e[-+]?\d+)?$/i;

/** A line each (RFC 4180): numbers have all of their digits, and are empty where there is none. */
export function csvOfTable({ head, rows, file }: DataTable): string {
  if (file) return csvOfTable(file);
  const text = (cell: Datum): string =>
    typeof cell !== "string" ? String(cell[0] ?? "") : kNumber.test(cell) ? cell : csvText(cell);
  return [head, ...rows].map((line) => `${line.map(text).join(",")}\r\n`).join("");
}

/** The heading of why values are not there. */
export const kWhy = "why none";

/** Rows with what they have on some axes: settings, values, the deviations of their seeds, and why a value is not there. */
export function rowsTable(
  frame: Frame,
  axes: readonly Axis[],
  shown: Iterable<number> = frame.rows.keys(),
): DataTable {
  const own = [...new Set(axes)];
  const deviates = own.map((axis) => axis.kind !== "setting" && !frame.seeds(axis).sd.every(Number.isNaN));
  const titles = own.map(({ title, key }, i) =>
    own.some((other, j) => j < i && other.title === title) ? `${title} (${key})` : title,
  );
  const head = ["row", ...titles.flatMap((title, i) => (deviates[i] ? [title, `${title} s.d.`] : [title]))];
  const rows = Array.from(shown, (row) => {
    const { id, label } = frame.rows[row]!;
    const cells = own.flatMap((axis, i): Datum[] => {
      if (axis.kind === "setting") return [frame.cellText(axis, row)];
      const value = datum(frame, axis, frame.values(axis)[row]);
      return deviates[i] ? [value, datum(frame, axis, frame.seeds(axis).sd[row])] : [value];
    });
    const why = own.flatMap((axis, i) => {
      const said = axis.kind === "setting" ? undefined : frame.whyNot(axis, row);
      return said ? [own.length > 1 ? `${titles[i]!}: ${said}` : said] : [];
    });
    return [rowName(id, label), ...cells, why.join("; ")];
  });
  if (rows.every((line) => line.at(-1) === "")) return { head, rows: rows.map((line) => line.slice(0, -1)) };
  return { head: [...head, kWhy], rows };
}
