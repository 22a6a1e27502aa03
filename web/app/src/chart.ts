// SPDX-License-Identifier: Apache-2.0
// The only file that uses the chart library, for axes, scales, the cursor and dragging. Lines are drawn here, since each has x values of
// its own.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { kAxes } from "./curves/axis";
import { Columns } from "./curves/columns";
import { firstFrom } from "./curves/held";
import type { Zoom } from "./curves/view";
import { tick } from "./format";
import type { Line, Plot, Track, Values } from "./series";

/** What is pointed at: a place on the x axis, and where each point of the chart is in pixels. */
export interface Cursor {
  x: number;
  /** Pixels from the top; undefined: another chart is pointed at. */
  top: number | undefined;
  left: number;
  /** Of the chart, in pixels. */
  width: number;
  toLeft: (x: number) => number;
  toTop: (y: number) => number;
}

export interface ChartOptions {
  /** Charts of one key share their cursor. */
  sync: string;
  onCursor: (cursor: Cursor | null) => void;
  /** A range of the x axis was chosen; undefined: all of it. */
  onZoom: (zoom: Zoom | undefined) => void;
}

export interface ChartScales {
  logX: boolean;
  logY: boolean;
  zoom: Zoom | undefined;
}

export interface Shown extends ChartScales {
  plot: Plot;
  hidden: ReadonlySet<string>;
}

/** A point that is pointed out. */
export interface Mark {
  x: number;
  y: number;
  color: string;
}

/** Draws a plot into an element and follows its width, the theme, and new points. */
export class Chart {
  private shown: Shown = {
    plot: { axis: "step", lines: [] },
    hidden: new Set(),
    logX: false,
    logY: false,
    zoom: undefined,
  };
  private drawn: uPlot | undefined;
  private shape = "";
  private readonly marks: HTMLElement[] = [];
  private readonly resize: ResizeObserver;
  private readonly theme = matchMedia("(prefers-color-scheme: dark)");
  private readonly rebuild = (): void => this.build();

  constructor(
    private readonly element: HTMLElement,
    private readonly options: ChartOptions,
  ) {
    this.resize = new ResizeObserver(() => this.drawn?.setSize(this.size()));
    this.resize.observe(element);
    this.theme.addEventListener("change", this.rebuild);
  }

  destroy(): void {
    this.resize.disconnect();
    this.theme.removeEventListener("change", this.rebuild);
    this.drawn?.destroy();
  }

  show(shown: Shown): void {
    this.shown = shown;
    const shape = [shown.plot.axis, shown.logX, shown.logY].join();
    if (!this.drawn || shape !== this.shape) {
      this.shape = shape;
      this.build();
    } else this.scale();
  }

  /** Dots on the lines that the cursor is near. */
  point(marks: Mark[]): void {
    const u = this.drawn;
    if (!u) return;
    while (this.marks.length < marks.length)
      this.marks.push(
        u.over.appendChild(Object.assign(document.createElement("div"), { className: "chart-dot" })),
      );
    this.marks.forEach((dot, i) => {
      const mark = marks[i];
      dot.hidden = mark === undefined;
      if (!mark) return;
      dot.style.transform = `translate(${u.valToPos(mark.x, "x")}px, ${u.valToPos(mark.y, "y")}px)`;
      dot.style.background = `var(${mark.color})`;
    });
  }

  private size(): { width: number; height: number } {
    return {
      width: Math.max(200, this.element.clientWidth),
      height: Math.max(120, this.element.clientHeight),
    };
  }

  /** What is seen, drawn anew. */
  private scale(): void {
    const u = this.drawn;
    const [x, y] = [this.xRange(), this.yRange()];
    u?.batch(() => {
      u.setScale("x", { min: x[0], max: x[1] });
      u.setScale("y", { min: y[0], max: y[1] });
    });
  }

  private lines(): Line[] {
    return this.shown.plot.lines.filter((line) => !this.shown.hidden.has(line.id));
  }

  private xRange(): [number, number] {
    const { logX, zoom } = this.shown;
    let from = Infinity;
    let to = -Infinity;
    for (const { x } of this.lines()) {
      const first = logX ? x[firstFrom(x, Number.MIN_VALUE)] : x[0];
      if (first === undefined) continue;
      from = Math.min(from, first);
      to = Math.max(to, x.at(-1)!);
    }
    if (zoom) [from, to] = [logX && zoom.from <= 0 ? Math.min(from, zoom.to / 10) : zoom.from, zoom.to];
    if (logX && to <= 0) return [1, 10];
    if (from > to) return [0, 1];
    if (from < to) return [from, to];
    return logX ? [from / 2, from * 2] : [from - 0.5, from + 0.5];
  }

  /** Of what is seen. */
  private yRange(): [number, number] {
    const [from, to] = this.xRange();
    const { logY } = this.shown;
    let low = Infinity;
    let high = -Infinity;
    const look = (x: number[], values: Values): void => {
      const end = Math.min(firstFrom(x, to) + 1, x.length);
      for (let i = Math.max(0, firstFrom(x, from)); i < end; ++i) {
        const value = values[i];
        if (typeof value !== "number" || (logY && value <= 0) || x[i]! > to) continue;
        if (value < low) low = value;
        if (value > high) high = value;
      }
    };
    for (const line of this.lines()) {
      for (const track of [line, ...line.rest, ...(line.raw ? [line.raw] : [])]) look(track.x, track.values);
      if (line.band) look(line.x, line.band.high);
      if (line.band && !logY) look(line.x, line.band.low);
    }
    if (low > high) return logY ? [0.1, 1] : [0, 1];
    if (this.shown.plot.zero && !logY && low >= 0) return [0, high > 0 ? high * 1.06 : 1];
    if (logY)
      return low < high ? [low / (high / low) ** 0.04, high * (high / low) ** 0.04] : [low / 2, high * 2];
    if (low === high) return [low - (Math.abs(low) || 1) * 0.1, high + (Math.abs(high) || 1) * 0.1];
    const room = (high - low) * 0.06;
    return [low - room, high + room];
  }

  private draw(u: uPlot, color: (name: string) => string): void {
    const { left, top, width, height } = u.bbox;
    const ctx = u.ctx;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, width, height);
    ctx.clip();
    const lines = this.lines();
    const pen = new Pen(u, this.shown);
    // what is faint lies behind, and a baseline before all others
    const order = [...lines].sort((a, b) => rank(a) - rank(b));
    for (const line of order)
      if (line.band && line.role !== "faint") pen.band(line, `${color(line.look.color)}26`);
    // the more lines, the fainter: the strong ones stand out
    const share = Math.min(0.35, 2 / Math.sqrt(lines.length));
    const alpha = Math.round(share * 255)
      .toString(16)
      .padStart(2, "0");
    for (const line of order) {
      const stroke = color(line.look.color);
      const faint = line.role === "faint";
      if (line.raw) pen.line(line.raw, { stroke: `${stroke}${faint ? "10" : "4d"}`, width: 1, dash: [] });
      for (const run of line.rest)
        pen.line(run, { stroke: `${stroke}${faint ? "10" : "b0"}`, width: 0.8, dash: line.look.dash });
      pen.line(line, {
        stroke: faint ? `${stroke}${alpha}` : stroke,
        width: faint ? 0.9 : line.look.strong || line.role === "strong" ? 2.25 : 1.6,
        dash: line.look.dash,
      });
    }
    ctx.restore();
    for (const line of lines) pen.crosses(line, color(line.look.color));
  }

  private build(): void {
    this.drawn?.destroy();
    this.marks.length = 0;
    const { plot, logX, logY } = this.shown;
    const style = getComputedStyle(this.element);
    const color = (name: string): string => style.getPropertyValue(name).trim();
    const font = `11px ${style.fontFamily}`;
    const axis: uPlot.Axis = {
      stroke: color("--muted"),
      font,
      grid: { stroke: color("--grid"), width: 1 },
      ticks: { stroke: color("--grid"), width: 1, size: 4 },
      gap: 4,
    };
    const text = kAxes[plot.axis];
    const ofX = logX ? kLog : text.timed ? { incrs: kTimes } : {};
    this.drawn = new uPlot(
      {
        ...this.size(),
        series: [{}, { paths: () => null, points: { show: false } }],
        legend: { show: false },
        scales: {
          x: { time: false, distr: logX ? 3 : 1, auto: false, range: (_, min, max) => [min, max] },
          y: { distr: logY ? 3 : 1, auto: false, range: (_, min, max) => [min, max] },
        },
        axes: [
          {
            ...axis,
            size: 30,
            values: (_, ticks) => ticks.map((value) => (value === null ? "" : text.tick(value))),
            ...ofX,
          },
          {
            ...axis,
            size: widthOf,
            ...(logY ? kLog : {}),
            values: (_, ticks) => ticks.map((value) => (value === null ? "" : tick(value))),
          },
        ],
        cursor: {
          // other charts follow the cursor, not the drag: a zoom is reported once
          sync: {
            key: this.options.sync,
            scales: ["x", null],
            filters: { pub: (type) => type === "mousemove" || type === "mouseleave" },
          },
          points: { show: false },
          y: false,
          drag: { x: true, y: false, setScale: false },
          bind: { dblclick: () => () => (this.options.onZoom(undefined), null) },
        },
        hooks: {
          draw: [(u) => this.draw(u, color)],
          setCursor: [(u) => this.options.onCursor(cursorOf(u))],
          setSelect: [
            (u) => {
              const { left, width } = u.select;
              if (width < 4) return;
              const [from, to] = [u.posToVal(left, "x"), u.posToVal(left + width, "x")];
              u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
              this.options.onZoom({ from, to });
            },
          ],
        },
      },
      kNothing,
      this.element,
    );
    this.scale();
  }
}

/** The library draws no points: its scales are set. */
const kNothing: uPlot.AlignedData = [
  [1, 2],
  [1, 2],
];

/** Steps of ticks on a time axis, in seconds. */
const kTimes = [
  ...[0.001, 0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800],
  ...[21600, 43200, 86400, 172800, 432000, 864000, 8640000, 86400000],
];

/** Every tick is written. */
const kLog = { splits: logTicks, filter: (_: uPlot, ticks: number[]) => ticks };

/** Ticks of a logarithmic axis: 1, 2 and 5 of each power of ten, or the powers alone; of a short stretch, even ones. */
function logTicks(_: uPlot, axis: number, min: number, max: number): number[] {
  const decades = Math.log10(max / min);
  if (decades < 0.7) {
    const rough = (max - min) / 8;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * ([1, 2, 5].find((digit) => digit * power >= rough) ?? 10);
    const first = Math.ceil(min / step);
    return Array.from({ length: Math.floor(max / step) - first + 1 }, (_, i) => (first + i) * step);
  }
  const every = Math.max(1, Math.ceil(decades / (axis === 0 ? 12 : 8)));
  const digits = decades > 3 ? [1] : [1, 2, 5];
  const from = Math.floor(Math.log10(min) / every) * every;
  const powers = Array.from({ length: Math.ceil(decades / every) + 2 }, (_, i) => from + i * every);
  return powers
    .flatMap((power) => digits.map((digit) => Number(`${digit}e${power}`)))
    .filter((x) => x >= min && x <= max);
}

function rank(line: Line): number {
  return line.role === "faint" ? 0 : line.look.strong ? 2 : 1;
}

function cursorOf(u: uPlot): Cursor | null {
  const { left = -1, top = -1 } = u.cursor;
  if (left < 0) return null;
  return {
    x: u.posToVal(left, "x"),
    left,
    top: top < 0 ? undefined : top,
    width: u.over.clientWidth,
    toLeft: (x) => u.valToPos(x, "x"),
    toTop: (y) => u.valToPos(y, "y"),
  };
}

interface Stroke {
  stroke: string;
  width: number;
  dash: number[];
}

/** "#0072b2", without the two digits of transparency. */
const isOpaque = (color: string): boolean => color.length === "#rrggbb".length;

/** Lines and bands on the canvas of a chart. */
class Pen {
  private readonly from: number;
  private readonly to: number;

  constructor(
    private readonly u: uPlot,
    private readonly scales: ChartScales,
  ) {
    this.from = u.scales.x!.min!;
    this.to = u.scales.x!.max!;
  }

  /** The places that are in sight, and one more on either side. */
  private seen(x: number[]): [number, number] {
    return [Math.max(0, firstFrom(x, this.from) - 1), Math.min(x.length, firstFrom(x, this.to) + 2)];
  }
  private left(x: number): number {
    return this.u.valToPos(x, "x", true);
  }
  private top(y: number): number {
    return this.u.valToPos(y, "y", true);
  }
  /** A logarithmic axis has no place for what is not above 0. */
  private has(x: number, y: number | null | undefined): y is number {
    return typeof y === "number" && !(this.scales.logY && y <= 0) && !(this.scales.logX && x <= 0);
  }

  line({ x, values }: Track, { stroke, width, dash }: Stroke): void {
    const ctx = this.u.ctx;
    const [first, end] = this.seen(x);
    ctx.strokeStyle = ctx.fillStyle = stroke;
    ctx.lineWidth = width * devicePixelRatio;
    ctx.lineJoin = "bevel";
    ctx.setLineDash(dash.map((length) => length * devicePixelRatio));
    ctx.beginPath();
    // transparent bars would show where they overlap, unless they are no wider than a column
    const canBeBars = dash.length === 0 && (isOpaque(stroke) || ctx.lineWidth < 1.25);
    const columns = new Columns(ctx, isOpaque(stroke) ? ctx.lineWidth : 1, canBeBars);
    let before = false;
    for (let i = first; i < end; ++i) {
      const here = this.has(x[i]!, values[i]);
      if (here) {
        const [left, top] = [this.left(x[i]!), this.top(values[i]!)];
        if (before) columns.lineTo(left, top);
        else if (i + 1 < x.length && this.has(x[i + 1]!, values[i + 1])) columns.moveTo(left, top);
        else {
          // a line needs two points to be seen: one alone is a dot
          const radius = (width + 0.8) * devicePixelRatio;
          ctx.fillRect(left - radius, top - radius, 2 * radius, 2 * radius);
        }
      }
      before = here;
    }
    columns.end();
    ctx.stroke();
    ctx.setLineDash([]);
  }

  band({ x, band }: Line, fill: string): void {
    const ctx = this.u.ctx;
    const [first, end] = this.seen(x);
    const bottom = this.u.bbox.top + this.u.bbox.height;
    ctx.fillStyle = fill;
    for (let i = first; i < end;) {
      const start = i;
      while (i < end && this.has(x[i]!, band!.high[i]) && typeof band!.low[i] === "number") ++i;
      if (i > start) {
        ctx.beginPath();
        for (let k = start; k < i; ++k) ctx.lineTo(this.left(x[k]!), this.top(band!.high[k]!));
        for (let k = i - 1; k >= start; --k) {
          const low = band!.low[k]!;
          ctx.lineTo(this.left(x[k]!), this.has(x[k]!, low) ? this.top(low) : bottom);
        }
        ctx.fill();
      } else ++i;
    }
  }

  /** Where a run's values stop being finite, at its last finite one. */
  crosses({ breaks }: Line, stroke: string): void {
    const { u } = this;
    const { left, top, width, height } = u.bbox;
    const arm = 4 * devicePixelRatio;
    u.ctx.save();
    u.ctx.lineWidth = 2 * devicePixelRatio;
    u.ctx.strokeStyle = stroke;
    for (const { x: place, at } of breaks) {
      if (this.scales.logX && place <= 0) continue;
      const x = this.left(place);
      const y = this.has(place, at) ? this.top(at) : top + height - arm;
      if (!(x >= left && x <= left + width && y >= top && y <= top + height)) continue;
      u.ctx.beginPath();
      u.ctx.moveTo(x - arm, y - arm);
      u.ctx.lineTo(x + arm, y + arm);
      u.ctx.moveTo(x - arm, y + arm);
      u.ctx.lineTo(x + arm, y - arm);
      u.ctx.stroke();
    }
    u.ctx.restore();
  }
}

/** Room for the longest label of the y axis. */
const widthOf: uPlot.Axis.Size = (u, labels, index, cycle) => {
  const axis = u.axes[index] as uPlot.Axis & { _size: number };
  if (cycle > 1) return axis._size; // it converged: the labels follow from the width no further
  u.ctx.font = (axis.font as unknown as string[])[0]!;
  const widest = Math.max(0, ...(labels ?? []).map((label) => u.ctx.measureText(label).width));
  return Math.max(52, Math.ceil(widest / devicePixelRatio) + 12);
};
