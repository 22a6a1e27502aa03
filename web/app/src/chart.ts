// SPDX-License-Identifier: Apache-2.0
// The only file that knows the chart library.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { tick } from "./format";
import type { Plot, Values } from "./series";

export interface ChartOptions {
  /** Charts of one key share their cursor. */
  sync: string;
  /** The index into the steps under the cursor, or null. */
  onCursor: (index: number | null) => void;
}

/** Draws a plot into an element and follows its width, the theme, and new points. */
export class Chart {
  private plot: Plot = { steps: [], lines: [] };
  private hidden: ReadonlySet<string> = new Set();
  private drawn: uPlot | undefined;
  private shape = "";
  private readonly resize: ResizeObserver;
  private readonly theme = matchMedia("(prefers-color-scheme: dark)");
  private readonly redraw = (): void => this.build();

  constructor(
    private readonly element: HTMLElement,
    private readonly options: ChartOptions,
  ) {
    this.resize = new ResizeObserver(() => this.drawn?.setSize(this.size()));
    this.resize.observe(element);
    this.theme.addEventListener("change", this.redraw);
  }

  destroy(): void {
    this.resize.disconnect();
    this.theme.removeEventListener("change", this.redraw);
    this.drawn?.destroy();
  }

  show(plot: Plot, hidden: ReadonlySet<string>): void {
    this.plot = plot;
    this.hidden = hidden;
    const shape = JSON.stringify(
      plot.lines.map(({ id, look, band, values, rest }) => [
        id,
        look,
        hidden.has(id),
        !!band,
        lonely(values),
        rest.map(lonely),
      ]),
    );
    if (!this.drawn || shape !== this.shape) {
      this.shape = shape;
      this.build();
      return;
    }
    const { min, max } = this.drawn.scales.x!;
    const before = this.drawn.data[0];
    const zoomed = before.length > 1 && (min !== before[0] || max !== before[before.length - 1]);
    this.drawn.setData(columns(plot), !zoomed);
    if (zoomed) this.drawn.redraw();
  }

  private size(): { width: number; height: number } {
    return {
      width: Math.max(200, this.element.clientWidth),
      height: Math.max(120, this.element.clientHeight),
    };
  }

  /** A cross where a run's values stop being finite, at its last finite one. */
  private markBreaks(u: uPlot, color: (name: string) => string): void {
    const { left, top, width, height } = u.bbox;
    const arm = 4 * devicePixelRatio;
    u.ctx.save();
    u.ctx.lineWidth = 2 * devicePixelRatio;
    for (const { id, look, breaks } of this.plot.lines) {
      if (this.hidden.has(id)) continue;
      u.ctx.strokeStyle = color(look.color);
      for (const { from, at } of breaks) {
        const x = u.valToPos(from, "x", true);
        const y = at === null ? top + height - arm : u.valToPos(at, "y", true);
        if (!(x >= left && x <= left + width && y >= top && y <= top + height)) continue;
        u.ctx.beginPath();
        u.ctx.moveTo(x - arm, y - arm);
        u.ctx.lineTo(x + arm, y + arm);
        u.ctx.moveTo(x - arm, y + arm);
        u.ctx.lineTo(x + arm, y - arm);
        u.ctx.stroke();
      }
    }
    u.ctx.restore();
  }

  private build(): void {
    this.drawn?.destroy();
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
    const series: uPlot.Series[] = [{}];
    const bands: uPlot.Band[] = [];
    for (const { id, label, look, values, band, rest } of this.plot.lines) {
      const stroke = color(look.color);
      const show = !this.hidden.has(id);
      series.push({
        label,
        show,
        stroke,
        width: look.strong ? 2.25 : 1.6,
        dash: look.dash,
        points: { show: lonely(values) },
      });
      // a run that goes on where the mean has ended: thinner, in the row's colour
      for (const run of rest)
        series.push({
          show,
          stroke: `${stroke}b0`,
          width: 0.8,
          dash: look.dash,
          points: { show: lonely(run), size: 3 },
        });
      if (!band) continue;
      const edge: uPlot.Series = { show, stroke: "transparent", width: 0, points: { show: false } };
      series.push({ ...edge }, { ...edge });
      bands.push({
        series: [series.length - 1, series.length - 2],
        fill: `${stroke}26` /* a canvas knows #rrggbbaa everywhere */,
      });
    }
    this.drawn = new uPlot(
      {
        ...this.size(),
        series,
        bands,
        legend: { show: false },
        scales: { x: { time: false } },
        axes: [
          { ...axis, size: 30, values: (_, ticks) => ticks.map(tick) },
          { ...axis, size: widthOf, values: (_, ticks) => ticks.map(tick) },
        ],
        cursor: {
          sync: { key: this.options.sync },
          points: { size: 6 },
          y: false,
          drag: { x: true, y: false },
        },
        hooks: {
          draw: [(u) => this.markBreaks(u, color)],
          setCursor: [
            (u) => this.options.onCursor((u.cursor.left ?? -1) < 0 ? null : (u.cursor.idx ?? null)),
          ],
        },
      },
      columns(this.plot),
      this.element,
    );
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

/** A line needs two points to be seen; fewer are drawn as dots. */
function lonely(values: Values): boolean {
  return values.filter((value) => typeof value === "number").length < 2;
}

function columns(plot: Plot): uPlot.AlignedData {
  return [
    plot.steps,
    ...plot.lines.flatMap((l) => [l.values, ...l.rest, ...(l.band ? [l.band.low, l.band.high] : [])]),
  ];
}
