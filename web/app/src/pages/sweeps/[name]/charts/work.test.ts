// SPDX-License-Identifier: Apache-2.0
// What 10,000 rows cost, counted: how often their cells are read, compared and drawn.
import { expect, test } from "vitest";
import type { TableRow } from "../../../../generated/ablate";
import { choiceOf, linesOf } from "../table/choice";
import { kLineHeight, windowAt } from "../../../../components/window";
import { keptBy, type Brush } from "./brush";
import { brushedBy } from "./brush_chip";
import { effectsOf } from "./effects";
import { Frame } from "./frame";
import { heatOf } from "./heat";
import { tableOf } from "./made_up";
import { nearestLine, trackOf } from "./parallel";
import { Near } from "./scales";

const kRows = 10_000;

/** A table of 10,000 rows that counts how often the cells of a row are asked for. */
function counted() {
  const table = tableOf(
    ["acc", "params"],
    Object.fromEntries(
      Array.from({ length: kRows }, (_, i) => [
        `a=${i % 10},b=${Math.floor(i / 10) % 10},c=${Math.floor(i / 100)}`,
        [[50 + ((i * 7919) % kRows) / 200, 0.1] as [number, number], 1e6 + i],
      ]),
    ),
  );
  const reads = { count: 0 };
  table.rows = table.rows.map((row) => {
    const { cells } = row;
    return Object.defineProperty({ ...row }, "cells", { get: () => (++reads.count, cells) }) as TableRow;
  });
  return { table, reads, frame: new Frame(table, table.rows) };
}

test("cells are read once: brushes, the heat map and effects read numbers", () => {
  const { frame, reads } = counted();
  const [acc, params] = [frame.axis("acc")!, frame.axis("params")!];
  frame.values(acc);
  frame.values(params);
  frame.bounds(acc, "sd");
  expect(reads.count).toBeLessThanOrEqual(3 * kRows);
  reads.count = 0;
  for (let i = 0; i < 50; ++i) {
    const brushes: Brush[] = [
      { kind: "range", axis: "acc", from: 60 + i / 10, to: 80 },
      { kind: "in", axis: "factor.a", levels: ["1", "2"] },
    ];
    const { count, kept } = brushedBy(frame, brushes)!;
    expect(count).toBe([...kept].reduce((sum, one) => sum + one, 0));
  }
  heatOf(frame, acc, frame.axis("factor.a")!, frame.axis("factor.b")!, true);
  effectsOf(frame, acc);
  // whether a row that has no value is broken is asked of its cell, of others not
  expect(reads.count).toBeLessThanOrEqual(2 * kRows);
});

test("a brush looks at each row once for each axis", () => {
  const { frame } = counted();
  const acc = frame.axis("acc")!;
  let looks = 0;
  const values = frame.values(acc);
  frame.values = () =>
    new Proxy(values, {
      get(target, key) {
        if (typeof key === "string" && /^\d+$/.test(key)) ++looks;
        return Reflect.get(target, key);
      },
    });
  keptBy(frame, [{ kind: "range", axis: "acc", from: 60, to: 70 }]);
  expect(looks).toBeLessThanOrEqual(2 * kRows);
});

test("of a brushed, found and sorted table each row's cells are read a fixed number of times, and a window is drawn", () => {
  const { table, frame, reads } = counted();
  const brushed = brushedBy(frame, [{ kind: "range", axis: "acc", from: 60, to: 90 }])!;
  const query = new URLSearchParams("sort=-acc&find=a%3D1");
  const order = { parameter: "sort", column: "acc", descending: true };
  reads.count = 0;
  const lines = linesOf(table, table.rows, { ...choiceOf(query, order), only: brushed.ids });
  expect(lines.length).toBeGreaterThan(100);
  expect(reads.count).toBeLessThanOrEqual(3 * kRows);
  const { from, to } = windowAt(5000 * kLineHeight, 460, lines.length);
  expect(to - from).toBeLessThan(60);
});

test("what is under the pointer is found among the points near it", () => {
  const { frame } = counted();
  const [acc, params] = [frame.values(frame.axis("acc")!), frame.values(frame.axis("params")!)];
  const x = params.map((value) => (value - 1) * 120_000);
  const y = acc.map((value) => (value - 50) * 7);
  const near = new Near(x, y);
  for (const place of [17, 4321, 9999]) {
    const found = near.to(x[place]! + 0.1, y[place]!)!;
    expect(Math.hypot(x[found]! - x[place]!, y[found]! - y[place]!)).toBeLessThan(1);
    expect(near.looked).toBeLessThan(kRows / 20);
  }
  expect(near.to(-500, -500)).toBeUndefined();
  const tracks = ["acc", "params"].map((key) => trackOf(frame, frame.axis(key)!));
  const line = nearestLine(
    tracks[0]!.at,
    tracks[1]!.at,
    0.5,
    (tracks[0]!.at[42]! + tracks[1]!.at[42]!) / 2,
    0.02,
    undefined,
  )!;
  expect((tracks[0]!.at[line]! + tracks[1]!.at[line]!) / 2).toBeCloseTo(
    (tracks[0]!.at[42]! + tracks[1]!.at[42]!) / 2,
    3,
  );
});
