// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { Columns } from "./columns";

type Point = readonly [left: number, top: number];

/** How far up and down a canvas was drawn on in each column of pixels. */
class Coverage {
  readonly low: number[];
  readonly high: number[];
  calls = 0;
  private at: Point = [0, 0];

  /** `wide`: the line, of which the middle is looked at. */
  constructor(
    width: number,
    private readonly wide: number,
  ) {
    this.low = new Array<number>(width).fill(Infinity);
    this.high = new Array<number>(width).fill(-Infinity);
  }
  moveTo(left: number, top: number): void {
    this.at = [left, top];
  }
  lineTo(left: number, top: number): void {
    ++this.calls;
    const [from, [x, y]] = [this.at, [left, top]];
    this.at = [x, y];
    for (
      let column = Math.floor(Math.min(from[0], x));
      column <= Math.floor(Math.max(from[0], x));
      ++column
    ) {
      const inside = (place: number) => Math.min(Math.max(place, column), column + 1);
      const height = (place: number) =>
        x === from[0] ? y : from[1] + ((y - from[1]) * (inside(place) - from[0])) / (x - from[0]);
      this.cover(column, height(from[0]), height(x), ...(x === from[0] ? [from[1]] : []));
    }
  }
  fillRect(left: number, top: number, width: number, height: number): void {
    ++this.calls;
    expect(width).toBe(Math.max(1, this.wide));
    this.cover(Math.floor(left + width / 2), top + this.wide / 2, top + height - this.wide / 2);
  }
  private cover(column: number, ...tops: number[]): void {
    this.low[column] = Math.min(this.low[column]!, ...tops);
    this.high[column] = Math.max(this.high[column]!, ...tops);
  }
}

const kWidth = 200;

function compare(points: Point[], asBars: boolean, wide = 1.6): Coverage {
  const [plain, drawn] = [new Coverage(kWidth, wide), new Coverage(kWidth, wide)];
  const columns = new Columns(drawn, wide, asBars);
  for (const [i, [left, top]] of points.entries()) {
    if (i === 0) (plain.moveTo(left, top), columns.moveTo(left, top));
    else (plain.lineTo(left, top), columns.lineTo(left, top));
  }
  columns.end();
  for (let column = 1; column + 1 < kWidth; ++column) {
    // a line that is drawn in the middle of its columns is seen up to a column beside where it is
    const near = [column - 1, column, column + 1];
    expect(drawn.low[column]).toBeGreaterThanOrEqual(Math.min(...near.map((one) => plain.low[one]!)) - 1e-9);
    expect(drawn.high[column]).toBeLessThanOrEqual(Math.max(...near.map((one) => plain.high[one]!)) + 1e-9);
    const highest = Math.min(...points.filter(([x]) => Math.floor(x) === column).map(([, y]) => y));
    const lowest = Math.max(...points.filter(([x]) => Math.floor(x) === column).map(([, y]) => y));
    if (Number.isFinite(highest)) expect(drawn.low[column]).toBeLessThanOrEqual(highest + 1e-9);
    if (Number.isFinite(lowest)) expect(drawn.high[column]).toBeGreaterThanOrEqual(lowest - 1e-9);
    // nothing is missing between two columns
    if (column > 1 && Number.isFinite(plain.low[column]!) && Number.isFinite(plain.low[column - 1]!)) {
      expect(drawn.low[column]! - drawn.high[column - 1]!).toBeLessThanOrEqual(
        Math.max(0, plain.low[column]! - plain.high[column - 1]!) + 1e-9,
      );
      expect(drawn.low[column - 1]! - drawn.high[column]!).toBeLessThanOrEqual(
        Math.max(0, plain.low[column - 1]! - plain.high[column]!) + 1e-9,
      );
    }
  }
  return drawn;
}

test("a line has its extremes in each column of pixels, and no gaps", () => {
  let seed = 1;
  const chance = (): number => (seed = (seed * 48271) % 2147483647) / 2147483647;
  const made = (count: number, top: (share: number) => number): Point[] =>
    Array.from({ length: count }, (_, i) => [(i * (kWidth - 1)) / count, top(i / count)]);
  for (const asBars of [true, false])
    for (const count of [20, 150, 250, 450, 1000, 5000]) {
      compare(
        made(count, () => 300 * chance()),
        asBars,
      );
      const lefts = Array.from({ length: count }, () => (kWidth - 1) * chance()).sort((a, b) => a - b);
      const crowded = lefts.map((left): Point => [left, 300 * chance()]);
      for (const wide of [0.8, 1.6, 6.75]) compare(crowded, asBars, wide);
      compare(
        made(count, (share) => 100 + 80 * Math.sin(20 * share)),
        asBars,
      );
      compare(
        made(count, (share) => 200 * share + (chance() < 0.1 ? 90 : 2) * chance()),
        asBars,
      );
    }
});

test("a long line takes no more drawing than its columns of pixels", () => {
  const points = Array.from({ length: 20_000 }, (_, i): Point => [
    (i * (kWidth - 1)) / 20_000,
    (i * 7919) % 301,
  ]);
  expect(compare(points, true).calls).toBeLessThan(2 * kWidth);
  expect(compare(points, false).calls).toBeLessThan(5 * kWidth);
});
