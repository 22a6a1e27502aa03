// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import type { Table } from "../../../../generated/ablate";
import { csvOfTable, rowsTable } from "./data";
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
  expect([found.degrees, x!.low, of(found, "a").over]).toEqual([0, undefined, ""]);
});

test("where rows are missing, levels are averaged over the combinations that every level has", () => {
  const rows: Record<string, Value> = {};
  for (const mode of ["dot", "poly"])
    for (const width of [1, 2, 3])
      for (const lr of [0.1, 0.2])
        rows[`mode=${mode},width=${width},lr=${lr}`] =
          (mode === "dot" ? 40 : 90) + 2 * width + (lr === 0.1 ? 0 : 1);
  const whole = effects(rows);
  expect(of(whole, "width").levels.map(({ mean }) => mean)).toEqual([67.5, 69.5, 71.5]);
  expect(of(whole, "width").over).toBe("");
  rows["mode=dot,width=1,lr=0.1"] = "NaN";
  rows["mode=poly,width=2,lr=0.2"] = undefined;
  // the plain means would be 76, 61 and 71.5
  const width = of(effects(rows), "width");
  expect(width.levels.map(({ mean, n, of: all }) => [mean, n, all])).toEqual([
    [67.5, 2, 4],
    [69.5, 2, 4],
    [71.5, 2, 4],
  ]);
  expect(width.over).toBe("over the 2 combinations of the other settings that every level has, of 4");
  // of mode: widths 1 and 2 at an lr each, and 3 at both
  expect(of(effects(rows), "mode").levels.map(({ mean, n }) => [mean, n])).toEqual([
    [45, 4],
    [95, 4],
  ]);
});

test("no means where no combination is at every level; what follows from a setting is not held fixed", () => {
  const none = of(
    effects({ "a=x,b=1,c=1": 1, "a=x,b=1,c=2": 2, "a=y,b=2,c=1": 3, "a=y,b=3,c=2": 4, "a=z,b=1,c=3": 9 }),
    "c",
  );
  expect(none.none).toMatch(/no combination of the other settings/);
  expect(none.levels.every(({ mean, low }) => mean === undefined && low === undefined)).toBe(true);
  const table = tableOf(["acc"], {
    "a=1,b=1": [1],
    "a=1,b=2": [2],
    "a=2,b=1": [3],
    "a=2,b=2": [4],
    "a=3,b=1": [5],
    "a=3,b=2": [6],
  });
  table.rows.forEach((row, i) => (row.group = i < 4 ? "small" : "large"));
  const frame = new Frame(table, table.rows);
  const found = effectsOf(frame, frame.axis("acc")!);
  expect(of(found, "a").levels.map(({ mean }) => mean)).toEqual([1.5, 3.5, 5.5]);
  expect(of(found, "a").over).toBe("with what follows from it: group");
  expect(of(found, "b").levels.map(({ mean }) => mean)).toEqual([3, 4]);
  expect(of(found, "group").none).not.toBe("");
});

test("an interval is of the seeds: other settings are no noise", () => {
  const table = tableOf(["acc"], {
    "a=x,b=1": [[10, 1]],
    "a=x,b=2": [[90, 2]],
    "a=y,b=1": [[12, 1]],
    "a=y,b=2": [[92, 0.5]],
  });
  const frame = new Frame(table, table.rows);
  const found = effectsOf(frame, frame.axis("acc")!);
  expect(found.degrees).toBe(8);
  // s² = (1 + 4 + 1 + 0.25) / 4, of two rows of three seeds; t(0.975, 8) = 2.306
  const half = (2.306 * Math.sqrt((6.25 / 4) * (2 / 3))) / 2;
  for (const { mean, low, high } of of(found, "a").levels) {
    expect(low).toBeCloseTo(mean! - half, 3);
    expect(high).toBeCloseTo(mean! + half, 3);
  }
  table.rows[3]!.cells[0]!.n = 1; // its deviation counts no more
  const less = new Frame(table, table.rows);
  const [, y] = of(effectsOf(less, less.axis("acc")!), "a").levels;
  expect(y!.high! - y!.mean!).toBeCloseTo((2.447 * Math.sqrt((12 / 6) * (1 / 3 + 1))) / 2, 3);
});

test("an interaction that the analysis of variance finds is told", () => {
  const table = tableOf(["acc"], { "mode=x,width=1": [1], "mode=x,width=2": [2], "mode=y,width=1": [3] });
  const effect = (factors: string[], p?: number) => ({ factors, p });
  const of = (p: number): Effects => {
    const effects = [effect(["mode"], 0.001), effect(["mode", "width"], p)];
    const told = { ...table, factor_analyses: [{ column: "acc", effects }] } as unknown as Table;
    const frame = new Frame(told, told.rows);
    return effectsOf(frame, frame.axis("acc")!);
  };
  expect(of(0.0312).together).toEqual([
    "mode × width: p = 0.0312 in the analysis of variance: what width does depends on mode.",
  ]);
  expect(of(1e-7).together.join()).toMatch(/^mode × width: p < 0\.0001 in/);
  expect(of(0.06).together).toEqual([]);
  expect(of(0.06).anova).toMatch(/values of all seeds/);
});

test("a chart as CSV: all digits, a deviation beside its mean, each column once", () => {
  const table = tableOf(["acc", "params"], {
    "lr=-1": [[-1 / 3, 0.125], 2e6],
    "lr=2": ["NaN", 3e6],
  });
  const frame = new Frame(table, table.rows);
  const [acc, params, lr] = ["acc", "params", "factor.lr"].map((key) => frame.axis(key)!);
  expect(csvOfTable(rowsTable(frame, [acc!, acc!, params!, lr!]))).toBe(
    [
      "row,acc,acc s.d.,params (M),lr,why none",
      `lr=-1,${-1 / 3},0.125,2,-1,`,
      "lr=2,,,3,2,acc: NaN",
      "",
    ].join("\r\n"),
  );
  expect(csvOfTable({ head: ["=a"], rows: [["-2+3"], ["-1e-7"]] })).toBe("'=a\r\n'-2+3\r\n-1e-7\r\n");
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
