// SPDX-License-Identifier: Apache-2.0

/** Where numbers are on an axis: 0 at its beginning, 1 at its end. */
export interface Scale {
  from: number;
  to: number;
  log: boolean;
  at: (value: number) => number;
  /** The number at a place. */
  back: (share: number) => number;
  ticks: number[];
}

/** An axis for numbers from `low` to `high` with about `count` ticks. With `log` both are above 0. */
export function scaleOf(low: number, high: number, log = false, count = 6): Scale {
  if (log) {
    const [a, b] =
      low < high ? [Math.log10(low), Math.log10(high)] : [Math.log10(low) - 0.3, Math.log10(high) + 0.3];
    const room = (b - a) * 0.05;
    const [from, to] = [a - room, b + room];
    return {
      from: 10 ** from,
      to: 10 ** to,
      log,
      at: (value) => (Math.log10(value) - from) / (to - from),
      back: (share) => 10 ** (from + share * (to - from)),
      ticks: logTicks(10 ** from, 10 ** to, count),
    };
  }
  const half = low < high ? (high - low) * 0.05 : Math.abs(low) * 0.05 || 0.5;
  return linear(low - half, high + half, count);
}

/** The same with these very ends. */
export function linear(from: number, to: number, count = 6): Scale {
  return {
    from,
    to,
    log: false,
    at: (value) => (value - from) / (to - from),
    back: (share) => from + share * (to - from),
    ticks: ticksOf(from, to, count),
  };
}

/** Steps of 1, 2 or 5 of a power of ten. */
export function ticksOf(from: number, to: number, count: number): number[] {
  const rough = (to - from) / Math.max(1, count);
  if (!(rough > 0) || !Number.isFinite(rough)) return [];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((digit) => digit * power >= rough * 0.999) ?? 10);
  const first = Math.ceil(from / step - 1e-9);
  const last = Math.floor(to / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) =>
    Number(((first + i) * step).toPrecision(12)),
  );
}

function logTicks(from: number, to: number, count: number): number[] {
  const decades = Math.log10(to / from);
  if (decades < 0.7) return ticksOf(from, to, count).filter((tick) => tick > 0);
  const every = Math.max(1, Math.ceil(decades / count));
  const digits = decades > count / 2 ? [1] : [1, 2, 5];
  const ticks: number[] = [];
  for (let power = Math.floor(Math.log10(from)); power <= Math.ceil(Math.log10(to)); ++power)
    for (const digit of digits)
      if (every === 1 || (digit === 1 && power % every === 0)) ticks.push(Number(`${digit}e${power}`));
  return ticks.filter((tick) => tick >= from && tick <= to);
}

/** The lowest and highest of the finite numbers; undefined: there are none. With `log`: of those above 0. */
export function extentOf(
  all: Iterable<ArrayLike<number>>,
  log = false,
): { low: number; high: number } | undefined {
  let [low, high] = [Infinity, -Infinity];
  for (const values of all)
    for (let i = 0; i < values.length; ++i) {
      const value = values[i]!;
      if (!Number.isFinite(value) || (log && value <= 0)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  return low <= high ? { low, high } : undefined;
}

/** Points by the squares of a grid that they lie in: what is near a place is found without looking at all of them. */
export class Near {
  private readonly squares = new Map<number, number[]>();
  /** How many points the last search looked at. */
  looked = 0;

  /** `x`, `y`: in pixels; a point without a place is NaN. */
  constructor(
    private readonly x: ArrayLike<number>,
    private readonly y: ArrayLike<number>,
    private readonly reach = 16,
  ) {
    for (let i = 0; i < x.length; ++i) {
      if (Number.isNaN(x[i]!) || Number.isNaN(y[i]!)) continue;
      const key = this.key(Math.floor(x[i]! / reach), Math.floor(y[i]! / reach));
      const square = this.squares.get(key);
      if (square) square.push(i);
      else this.squares.set(key, [i]);
    }
  }

  private key(column: number, row: number): number {
    return row * 65_536 + column;
  }

  /** The nearest within reach. */
  to(x: number, y: number): number | undefined {
    const [column, row] = [Math.floor(x / this.reach), Math.floor(y / this.reach)];
    let best: number | undefined;
    let least = this.reach;
    this.looked = 0;
    for (let i = -1; i <= 1; ++i)
      for (let j = -1; j <= 1; ++j)
        for (const point of this.squares.get(this.key(column + i, row + j)) ?? []) {
          ++this.looked;
          const away = Math.hypot(this.x[point]! - x, this.y[point]! - y);
          if (away <= least) [best, least] = [point, away];
        }
    return best;
  }
}
