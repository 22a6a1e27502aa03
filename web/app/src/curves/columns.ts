// SPDX-License-Identifier: Apache-2.0
/** A line that goes up and down by more than this within a column of pixels may be drawn as a bar there. In pixels. */
const kSteep = 6;

/** What is needed of a canvas. */
type Canvas = Pick<CanvasRenderingContext2D, "moveTo" | "lineTo" | "fillRect">;

/**
 * A line through many points. Those in one column of pixels become its lowest, its highest and its last: it looks the same, and what it
 * costs is bound by the width of the chart. Where it goes up and down within columns these may be bars as wide as the line: to stroke
 * that takes fifty times as long.
 */
export class Columns {
  private column = NaN;
  private low = 0;
  private high = 0;
  private last = 0;
  private count = 0;

  /** `width`: of the line, in pixels. `asBars`: it has no dashes, and may overlap itself. */
  constructor(
    private readonly ctx: Canvas,
    private readonly width: number,
    private readonly asBars: boolean,
  ) {}

  moveTo(left: number, top: number): void {
    this.end();
    this.begin(left, top);
    this.ctx.moveTo(left, top);
  }
  lineTo(left: number, top: number): void {
    const column = Math.floor(left);
    if (column === this.column) {
      this.low = Math.min(this.low, top);
      this.high = Math.max(this.high, top);
      this.last = top;
      ++this.count;
      return;
    }
    const beside = column === this.column + 1 && this.isBar();
    const before = this.last;
    this.end();
    this.begin(left, top);
    if (!beside) return this.ctx.lineTo(left, top);
    this.ctx.moveTo(left, top);
    this.reach(before); // the way from the bar beside it is in this column
  }
  /** What is left of the last column. */
  end(): void {
    const { ctx, column, low, high, last, width } = this;
    if (this.isBar()) {
      const wide = Math.max(1, width);
      ctx.fillRect(column + 0.5 - wide / 2, low - width / 2, wide, high - low + width);
      ctx.moveTo(column + 0.5, last);
    } else if (this.count > 1) for (const top of [low, high, last]) ctx.lineTo(column + 0.5, top);
    this.count = 0;
  }
  private isBar(): boolean {
    return this.asBars && this.count > 2 && this.high - this.low > kSteep;
  }
  private reach(top: number): void {
    this.low = Math.min(this.low, top);
    this.high = Math.max(this.high, top);
    this.count += 2; // what it reaches to, and back
  }
  private begin(left: number, top: number): void {
    this.column = Math.floor(left);
    this.low = this.high = this.last = top;
    this.count = 1;
  }
}
