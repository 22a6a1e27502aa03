// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { effectsOf, type Effects } from "./effects";
import { Frame } from "./frame";
import { heatOf, type Heat } from "./heat";
import { tableOf, type Value } from "./made_up";

const frameOf = (rows: Record<string, Value>): Frame => {
  const table = tableOf(
    ["acc"],
    Object.fromEntries(Object.entries(rows).map(([id, value]) => [id, [value]])),
  );
  return new Frame(table, table.rows);
};
const effects = (rows: Record<string, Value>): Effects => {
  const frame = frameOf(rows);
  return effectsOf(frame, frame.axis("acc")!);
};
const heat = (rows: Record<string, Value>, average = false, across = "factor.a", down = "factor.b"): Heat => {
  const frame = frameOf(rows);
  return heatOf(frame, frame.axis("acc")!, frame.axis(across)!, frame.axis(down)!, average);
};
const of = (found: Effects, name: string) => found.effects.find(({ axis }) => axis.title === name)!;

test("a setting's share is the spread of its levels' means, of all spread between rows", () => {
  // a: means 1.5 and 3.5, b: 2 and 3; mean 2.5, all squares 5, of which a has 4 and b has 1
  const found = effects({ "a=x,b=1": 1, "a=x,b=2": 2, "a=y,b=1": 3, "a=y,b=2": 4 });
  expect(found.mean).toBe(2.5);
  expect(found.effects.map(({ axis, share }) => [axis.title, share])).toEqual([
    ["a", 0.8],
    ["b", 0.2],
  ]);
  expect(of(found, "a").byChance).toBeCloseTo(1 / 3);
  expect(found.notes).toEqual([]);
  const [x] = of(found, "a").levels;
  expect([x!.level, x!.of, x!.n, x!.mean]).toEqual(["x", 2, 2, 1.5]);
  // t(0.975, 1) = 12.706, s.e. = 0.5
  expect(x!.low).toBeCloseTo(1.5 - 12.706 / 2, 3);
});

test("no share where it would say nothing", () => {
  expect(of(effects({ "a=1": 1, "a=2": 2 }), "a").why).toMatch(/fewer than three rows/);
  expect(of(effects({ "a=1": 1, "a=2": 2, "a=3": 3 }), "a").why).toMatch(/each level has one row/);
  expect(of(effects({ "a=1,b=1": 5, "a=1,b=2": 5, "a=2,b=1": 5 }), "a").why).toMatch(/same value/);
  const gone = effects({ "a=1,b=1": 5, "a=1,b=2": 4, "a=1,b=3": 3, "a=2,b=1": "NaN" });
  expect(of(gone, "a").why).toMatch(/only one level/);
  expect([gone.n, gone.of, gone.broken]).toEqual([3, 4, 1]);
  expect(of(gone, "a").levels[1]).toMatchObject({ of: 1, n: 0, mean: undefined, low: undefined });
  for (const { effects: all } of [gone]) for (const { share } of all) expect(share).toBeUndefined();
  expect(effects({ orig: 1, msf: 2 }).why).toMatch(/no setting/);
  expect(effects({ "a=1": "NaN", "a=2": undefined }).why).toMatch(/No row has a value of acc; 1 diverged/);
});

test("one row at a level has no interval", () => {
  const [one, two] = of(effects({ "a=1,b=1": 1, "a=2,b=1": 2, "a=2,b=2": 3 }), "a").levels;
  expect(one).toMatchObject({ n: 1, mean: 1, low: undefined });
  expect(two!.low).toBeDefined();
});

test("it is said where a design is not balanced, and where settings change together", () => {
  const rows = { "a=x,b=1": 1, "a=x,b=2": 2, "a=y,b=1": 3 };
  expect(effects(rows).notes.join()).toMatch(/not balanced \(a and b\)/);
  expect(effects({ ...rows, "a=y,b=2": undefined }).notes.join()).toMatch(
    /balanced but for the rows without a value/,
  );
  expect(effects({ "a=x,b=1": 1, "a=y,b=2": 2, "a=y,b=2,c=1": 3 }).notes.join()).toMatch(
    /a and b always change together/,
  );
});

test("cells of one row have its mean, and other settings are averaged over only when asked", () => {
  const rows = { "a=1,b=1,c=1": 1, "a=1,b=1,c=2": 3, "a=2,b=1,c=1": 5, "a=2,b=2,c=1": 7 };
  const one = heat(rows);
  expect(one.cells.map((line) => line.map(({ mean, none }) => mean ?? none))).toEqual([
    ["2 rows", 5],
    ["no row", 7],
  ]);
  expect(one.asks).toBe(true);
  expect([one.low, one.high]).toEqual([5, 7]);
  expect(one.notes.join(" ")).toBe("1 cell with several rows, which differ in c. Hatched: 1 without a row.");
  const all = heat(rows, true);
  expect(all.asks).toBe(false);
  expect(all.cells[0]![0]).toMatchObject({ mean: 2, n: 2 });
  expect(all.notes[0]).toBe("Each cell is the mean of 1 to 2 rows, averaged over c.");
  expect(all.notes[1]).toMatch(/not averaged over the same/);
});

test("a cell with a row that is NaN has no mean, one with a row that waits is marked", () => {
  const bad = heat({ "a=1,b=1,c=1": 1, "a=1,b=1,c=2": "NaN", "a=2,b=2": "NaN", "a=1,b=2": undefined }, true);
  expect(bad.cells.map((line) => line.map(({ mean, none }) => mean ?? none))).toEqual([
    ["1 diverged", "no row"],
    ["no value", "diverged"],
  ]);
  expect(bad.low).toBe(Infinity);
  const waits = heat({ "a=1,b=1,c=1": 1, "a=1,b=1,c=2": undefined, "a=2,b=2": 2 }, true);
  expect(waits.cells[0]![0]).toMatchObject({ mean: 1, n: 1 });
  expect(waits.notes.join(" ")).toMatch(/1 cell marked \* lacks values/);
});

test("a heat map has bounds", () => {
  const rows = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`a=${i},b=${i % 2}`, i]));
  expect(heat(rows).why).toBe("a has 50 levels: a heat map has 40 on a side at most.");
});
