// SPDX-License-Identifier: Apache-2.0
import type { Axis, Frame, Spread } from "./frame";

export const kCharts = {
  bars: "Bars",
  scatter: "Scatter",
  heat: "Heat map",
  parallel: "Parallel axes",
  effects: "Main effects",
} as const;
export type ChartKind = keyof typeof kCharts;

/** Axes of parallel coordinates that are drawn without being chosen. */
const kUsualAxes = 8;

/** What is drawn, as far as the table has it; the address keeps all of it. */
export interface ChartChoice {
  kind: ChartKind;
  /** The metric: the length of bars, the height of points, the colour of cells and lines. */
  of: Axis | undefined;
  /** Scatter: the horizontal axis. */
  x: Axis | undefined;
  /** Scatter: the vertical one, which may be a count or a setting too. */
  y: Axis | undefined;
  /** Heat map. */
  across: Axis | undefined;
  down: Axis | undefined;
  /** Parallel axes, in their order. */
  axes: Axis[];
  spread: Spread;
  logX: boolean;
  logY: boolean;
  /** Bars: the axis begins at 0. */
  zero: boolean;
  /** Heat map: several rows of a cell are averaged. */
  average: boolean;
  asTable: boolean;
  /** Rows that are pointed out. */
  chosen: ReadonlySet<string>;
}

export function chartKind(query: URLSearchParams): ChartKind {
  const kind = query.get("chart") ?? "";
  return Object.hasOwn(kCharts, kind) ? (kind as ChartKind) : "bars";
}

/** Ids of rows, which have no spaces, as the address holds them. */
export function idsOf(text: string | null): ReadonlySet<string> {
  return new Set((text ?? "").split(" ").filter(Boolean));
}

export function chartChoice(query: URLSearchParams, frame: Frame): ChartChoice {
  const one = (name: string, among: readonly Axis[]): Axis | undefined =>
    among.find(({ key }) => key === query.get(name));
  const { metrics, numbers, settings } = frame;
  const of = one("chart-of", metrics) ?? metrics[0];
  const counts = numbers.filter(({ kind }) => kind === "count");
  const y = one("chart-y", numbers) ?? of ?? numbers[0];
  const x =
    one("chart-x", numbers) ?? counts.find((axis) => axis !== y) ?? numbers.find((axis) => axis !== y) ?? y;
  const across =
    one("chart-across", settings) ?? settings.find((axis) => axis !== one("chart-down", settings));
  const down = one("chart-down", settings) ?? settings.find((axis) => axis !== across);
  const wanted = query.getAll("chart-axes").flatMap((key) => frame.axis(key) ?? []);
  const usual = [...settings, ...metrics, ...counts];
  const spread = query.get("chart-spread");
  const logs = (query.get("chart-log") ?? "").split(",");
  return {
    kind: chartKind(query),
    of,
    x,
    y,
    across,
    down,
    axes: wanted.length > 0 ? wanted : usual.slice(0, kUsualAxes),
    spread: spread === "se" || spread === "ci" || spread === "none" ? spread : "sd",
    logX: logs.includes("x"),
    logY: logs.includes("y"),
    zero: query.get("chart-zero") === "1",
    average: query.get("chart-mean") !== "0",
    asTable: query.get("chart-as") === "table",
    chosen: idsOf(query.get("chosen")),
  };
}
