// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { brushIn, brushOf, brushText, keptBy, rangeOf, unknownIn, withBrush, type Brush } from "./brush";
import { chartChoice } from "./choice";
import { Frame, levelsIn, levelsOf, printedNumber, varyTogether } from "./frame";
import { tableOf } from "./made_up";

const sample = (): Frame => {
  const table = tableOf(["acc", "params", "share", "width"], {
    "lr=0.1,groups=2": [80, 21e6, "QKV", "64"],
    "lr=0.01,groups=2": [[81, 0.5], 22e6, "QKV", "128"],
    "lr=0.1,groups=10": ["NaN", 23e6, "a b", "256"],
    "lr=0.01,groups=10": [undefined, 24e6, "", "512"],
  });
  return new Frame(table, table.rows);
};
const kept = (frame: Frame, brushes: Brush[]): string =>
  frame.rows.flatMap(({ id }, i) => (keptBy(frame, brushes)[i] ? [id] : [])).join(" ");

test("columns and what the names of rows say are axes, settings in the order of their numbers", () => {
  const frame = sample();
  expect(frame.axes.map(({ key, kind }) => `${key} ${kind}`)).toEqual([
    "acc metric",
    "params count",
    "share setting",
    "width setting",
    "factor.lr setting",
    "factor.groups setting",
  ]);
  expect(frame.levels(frame.axis("factor.groups")!).names).toEqual(["2", "10"]);
  expect(frame.levels(frame.axis("factor.lr")!).names).toEqual(["0.01", "0.1"]);
  expect([...frame.levels(frame.axis("share")!).of]).toEqual([0, 0, 1, -1]);
  expect(frame.numbers.map(({ key }) => key)).toEqual([
    "acc",
    "params",
    "width",
    "factor.lr",
    "factor.groups",
  ]);
  expect([...frame.values(frame.axis("params")!)]).toEqual([21, 22, 23, 24]);
});

test("what is no number is said in words", () => {
  const frame = sample();
  const acc = frame.axis("acc")!;
  expect([...frame.values(acc)]).toEqual([80, 81, NaN, NaN]);
  expect([2, 3].map((row) => frame.whyNot(acc, row))).toEqual(["NaN", "no value yet"]);
  expect([2, 3].map((row) => frame.isBroken(acc, row))).toEqual([true, false]);
  expect(frame.bounds(acc, "sd").low[1]).toBe(80.5);
  expect(frame.bounds(acc, "se").high[1]).toBeCloseTo(81 + 0.5 / Math.sqrt(3));
  expect(frame.bounds(acc, "sd").low[0]).toBeNaN();
  expect(frame.bounds(acc, "ci").low[1]).toBeNaN();
  expect(frame.cellText(frame.axis("share")!, 3)).toBe("not known");
});

test("ids that are no combination of factors name no setting; rows with factors do", () => {
  expect(levelsIn("a=1,b=x=y")).toEqual([
    ["a", "1"],
    ["b", "x=y"],
  ]);
  expect(levelsIn("vit-s,epochs=300")).toEqual([
    ["row", "vit-s"],
    ["epochs", "300"],
  ]);
  expect(levelsIn("base")).toEqual([]);
  expect(levelsIn("a=[1,2]")).toBeUndefined();
  const plain = tableOf(["acc"], { orig: [1], msf: [2] });
  expect(new Frame(plain, plain.rows).settings).toEqual([]);
  const both = tableOf(["acc"], { "s,epochs=100": [1], "s,epochs=300": [2], "b,epochs=100": [3] });
  expect(new Frame(both, both.rows).settings.map(({ title }) => title)).toEqual(["row", "epochs"]);
  const base = tableOf(["acc"], { base: [1], "lr=1": [2] });
  expect(new Frame(base, base.rows).levels(new Frame(base, base.rows).settings[0]!).names).toEqual([
    "–",
    "1",
  ]);
});

test("a factor that is a column too is one axis", () => {
  const table = tableOf(["acc", "lr"], { "lr=1,k=a": [1, "1"], "lr=2,k=a": [2, "2"], "lr=2,k=b": [3, "2"] });
  table.columns[1]!.source = "recipe.lr";
  expect(new Frame(table, table.rows).settings.map(({ key }) => key)).toEqual(["lr", "factor.k"]);
  expect(varyTogether(levelsOf(["a", "b", "b"]), levelsOf(["1", "2", "2"]))).toBe(true);
  expect(varyTogether(levelsOf(["a", "b", "b"]), levelsOf(["1", "2", "1"]))).toBe(false);
});

test("printed numbers are read, and nothing else", () => {
  expect(["78.90", "−0.3", "79.8 ± 0.1", "81.2 %", "–", "n/a", "1/2", "80 (x)"].map(printedNumber)).toEqual([
    78.9,
    -0.3,
    79.8,
    81.2,
    undefined,
    undefined,
    undefined,
    80,
  ]);
});

test("a brush goes through the address and back, whatever the names", () => {
  const all: Brush[] = [
    { kind: "range", axis: "a~b %", from: -1.5, to: 2e-7 },
    { kind: "in", axis: "<b>", levels: ["x~y", "\u202eק", "50%"] },
    { kind: "rows", ids: ["a", "b=1,c=2"] },
  ];
  for (const brush of all) {
    const query = new URLSearchParams({ brush: brushText(brush) });
    expect(brushIn(new URLSearchParams(query.toString()).get("brush")!)).toEqual(brush);
  }
  for (const text of [
    "",
    "range",
    "range~a",
    "range~a~1",
    "range~a~x~2",
    "range~a~1~Infinity",
    "in~a",
    "rows",
    "what~a~b",
  ])
    expect(brushIn(text)).toBeUndefined();
  expect(brushIn("range~a~5~1")).toEqual({ kind: "range", axis: "a", from: 1, to: 5 });
  expect(withBrush(all, "<b>", undefined)).toEqual([brushText(all[0]!), brushText(all[2]!)]);
  expect(brushOf(all, "")).toBe(all[2]);
  expect(rangeOf("a", 80.123456, 79.98765)).toEqual({ kind: "range", axis: "a", from: 79.9877, to: 80.1235 });
});

test("brushes keep the rows that pass them all; an axis that is not there keeps all and is named", () => {
  const frame = sample();
  expect(kept(frame, [{ kind: "range", axis: "acc", from: 0, to: 80 }])).toBe("lr=0.1,groups=2");
  expect(kept(frame, [{ kind: "in", axis: "factor.lr", levels: ["0.1"] }])).toBe(
    "lr=0.1,groups=2 lr=0.1,groups=10",
  );
  expect(
    kept(frame, [
      { kind: "range", axis: "width", from: 100, to: 300 },
      { kind: "in", axis: "share", levels: ["QKV", "nothing"] },
    ]),
  ).toBe("lr=0.01,groups=2");
  expect(kept(frame, [{ kind: "rows", ids: ["lr=0.01,groups=10", "gone"] }])).toBe("lr=0.01,groups=10");
  const gone: Brush[] = [{ kind: "range", axis: "gone", from: 0, to: 1 }];
  expect(kept(frame, gone).split(" ")).toHaveLength(4);
  expect(unknownIn(frame, gone)).toEqual(["gone"]);
});

test("an address that asks for what is not there gets what is", () => {
  const frame = sample();
  const choose = (query: string) => chartChoice(new URLSearchParams(query), frame);
  const usual = choose("chart=nothing&chart-of=gone&chart-spread=x");
  expect([usual.kind, usual.of?.key, usual.spread]).toEqual(["bars", "acc", "sd"]);
  expect([usual.x?.key, usual.y?.key]).toEqual(["params", "acc"]);
  const wanted = choose(
    "chart=heat&chart-across=factor.groups&chart-log=y&chosen=a+b&chart-axes=acc&chart-axes=width",
  );
  expect([wanted.across?.key, wanted.down?.key, wanted.logX, wanted.logY]).toEqual([
    "factor.groups",
    "share",
    false,
    true,
  ]);
  expect(wanted.axes.map(({ key }) => key)).toEqual(["acc", "width"]);
  expect([...wanted.chosen]).toEqual(["a", "b"]);
  const empty = new Frame(tableOf(["acc"], {}), []);
  expect(chartChoice(new URLSearchParams(), empty).across).toBeUndefined();
});

test("a cell is shown as the table shows it, to the last digit", () => {
  const table = tableOf(["acc"], { a: [[95.175, 0.615]], b: ["NaN"] });
  table.rows[0]!.cells[0]!.text = "95.18 ± 0.62";
  const frame = new Frame(table, table.rows);
  const acc = frame.axis("acc")!;
  expect(frame.cellText(acc, 0)).toBe("95.18 ± 0.62");
  expect(frame.cellText(acc, 1)).not.toContain("95");
});

test("a count without a unit is whole, however many digits its column has", () => {
  const table = tableOf(["acc", "params"], { "lr=0.1": [80, 37504], "lr=1": [81, 66176] });
  Object.assign(table.columns[1]!, { unit: "", digits: 3 });
  const frame = new Frame(table, table.rows);
  expect(frame.text(frame.axis("params")!, 66176)).toBe("66\u202f176");
  Object.assign(table.columns[1]!, { unit: "M" });
  const inMillions = new Frame(table, table.rows);
  expect(inMillions.text(inMillions.axis("params")!, 1)).toBe("1.000");
});
