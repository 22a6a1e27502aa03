// SPDX-License-Identifier: Apache-2.0
// The only file that knows the chart library.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { tick } from "./format";
import type { Plot } from "./series";

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
      plot.lines.map(({ id, look, band, values }) => [id, look, hidden.has(id), !!band, lonely(values)]),
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
    for (const { id, label, look, values, band } of this.plot.lines) {
      const stroke = color(look.color);
      const show = !this.hidden.has(id);
      series.push({
        label,
        show,
        stroke,
        width: look.strong ? 2.25 : 1.6,
        dash: look.dash,
        spanGaps: !band,
        points: { show: lonely(values) },
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
          { ...axis, size: 52, values: (_, ticks) => ticks.map(tick) },
        ],
        cursor: {
          sync: { key: this.options.sync },
          points: { size: 6 },
          y: false,
          drag: { x: true, y: false },
        },
        hooks: {
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

/** A line needs two points to be seen; fewer are drawn as dots. */
function lonely(values: (number | null)[]): boolean {
  return values.filter((value) => value !== null).length < 2;
}

function columns(plot: Plot): uPlot.AlignedData {
  return [
    plot.steps,
    ...plot.lines.flatMap((l) => (l.band ? [l.values, l.band.low, l.band.high] : [l.values])),
  ];
}
