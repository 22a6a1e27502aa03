// SPDX-License-Identifier: Apache-2.0
import type { Zoom } from "./view";
import { kAxes } from "./axis";
import type { Line, Plot, Track } from "../series";

/** What a spreadsheet would take for a formula begins with one of these: names come from anywhere. */
const kFormula = /^[=+\-@\t\r]/;

/** A name as a spreadsheet reads it (RFC 4180): never as a formula. */
export function csvText(name: string): string {
  const safe = kFormula.test(name) ? `'${name}` : name;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** "top-1 (%) by lr" as the name of a file: "top-1-by-lr". */
export function fileName(title: string): string {
  return title
    .replace(/[^\w.]+/g, "-")
    .slice(0, 80)
    .replace(/^[-.]+|[-.]+$/g, "");
}

const cell = (value: number | null | undefined): string => (typeof value === "number" ? String(value) : "");

/**
 * The points that a chart shows, all of their digits, a line each (RFC 4180). Points that are not finite have no value. Of a mean `n` says
 * of how many runs; `smoothed` stands beside `value` where lines are smoothed.
 */
export function csvOf(metric: string, plot: Plot, lines: Line[], zoom: Zoom | undefined): string {
  const axis = plot.axis === "step" ? [] : [kAxes[plot.axis].unit];
  const smooth = lines.some((line) => line.raw);
  const spread = lines.some((line) => line.n ?? line.band);
  const head = ["metric", "line", "step", ...axis, "value", ...(smooth ? ["smoothed"] : [])];
  const rows = [[...head, ...(spread ? ["low", "high", "n"] : [])]];
  for (const line of lines) {
    const { raw, band, n } = line;
    const together = raw?.x.length === line.x.length;
    const add = (track: Track, i: number, values: string[], spreads: string[]): void => {
      const x = track.x[i]!;
      if (zoom && (x < zoom.from || x > zoom.to)) return;
      const place = [
        csvText(metric),
        csvText(line.label),
        cell(track.steps[i]),
        ...(axis.length ? [cell(x)] : []),
      ];
      rows.push([...place, ...values, ...(spread ? spreads : [])]);
    };
    if (raw && !together) raw.x.forEach((_, i) => add(raw, i, [cell(raw.values[i]), ""], ["", "", ""]));
    line.x.forEach((_, i) => {
      const value = cell(line.values[i]);
      const values = smooth ? [together ? cell(raw?.values[i]) : "", raw ? value : ""] : [value];
      add(line, i, values, [cell(band?.low[i]), cell(band?.high[i]), cell(n?.[i])]);
    });
  }
  return rows.map((row) => `${row.join(",")}\r\n`).join("");
}
