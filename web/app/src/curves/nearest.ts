// SPDX-License-Identifier: Apache-2.0
import type { Cursor } from "../chart";
import { nearestPoint, type Line } from "../series";

/** A line near the cursor, at its own point that is nearest. */
export interface Near {
  line: Line;
  index: number;
  /** Before it was smoothed; undefined where it was not, or has no such point. */
  raw: number | null | undefined;
  distance: number;
}

/** Farther away in pixels than this, along the axis, a line has nothing to say of where the cursor is. */
const kReach = 48;

/** Lines that have something where the cursor is, the nearest first. */
export function nearLines(lines: Line[], cursor: Cursor): Near[] {
  const near: Near[] = [];
  for (const line of lines) {
    const index = nearestPoint(line, cursor.x);
    if (index === undefined) continue;
    const x = line.x[index]!;
    const across = Math.abs(cursor.toLeft(x) - cursor.left);
    const beyond = cursor.x < line.x[0]! || cursor.x > line.x.at(-1)!;
    if (!(across <= kReach) && beyond) continue;
    const value = line.values[index];
    const down =
      typeof value !== "number" ? 1e6 : cursor.top === undefined ? 0 : cursor.toTop(value) - cursor.top;
    const own = line.raw && nearestPoint(line.raw, x);
    near.push({
      line,
      index,
      raw: own === undefined ? undefined : line.raw!.values[own],
      distance: Math.hypot(across, Number.isNaN(down) ? 1e6 : down),
    });
  }
  return near.sort((a, b) => a.distance - b.distance);
}
