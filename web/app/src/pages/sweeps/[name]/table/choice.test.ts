// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import type { Cell, Table, TableRow } from "../../../../generated/ablate";
import { choiceOf, chosenRows, linesOf, partsText, printedPath, type Line } from "./choice";
import { formOf, isPivoted, withForm } from "./form";

// The same rows as in tests/printing/selection_test.cc, which expects the same orders.
const cell = (text: string, n = 2, mean?: number | "NaN", paper = ""): Cell =>
  ({ text, n, of: 2, mean, paper, unfilled: 0, runs: [], diverged: [] }) as unknown as Cell;
const row = (id: string, label: string, cells: Cell[], group = ""): TableRow =>
  ({ id, label, cells, group }) as TableRow;
const table = (rows: TableRow[]): Table =>
  ({
    sweep: "msf-sharing",
    show: [] as string[],
    columns: [
      { name: "acc", kind: "KIND_METRIC" },
      { name: "params", kind: "KIND_COUNT" },
      { name: "share", kind: "KIND_SETTING" },
    ],
    rows,
  }) as unknown as Table;
const sample = table([
  row("o", "Original", [cell("81.25 ± 0.35", 2, 81.25, "78.90"), cell("21.91", 2, 21.91), cell("QKV-W")]),
  row("h", "MSF, K=V", [cell("79.50", 1, 79.5, "79.79"), cell("23.68", 2, 23.68), cell("QKKPW")]),
  row("a", "MSF, Simplest", [cell("–", 0, undefined, "61.13"), cell("16.60", 2, 16.6), cell("QQQQQ")]),
]);

const choose = (query: string) => {
  const parameters = new URLSearchParams(query);
  const sort = parameters.get("sort");
  return choiceOf(parameters, {
    parameter: "sort",
    column: sort?.replace(/^-/, "") ?? null,
    descending: sort?.startsWith("-") ?? false,
  });
};
const ids = (query: string, of = sample) =>
  chosenRows(of, of.rows, choose(query))
    .map((one) => one.id)
    .join(" ");

test("rows are in the order of a column, and what has no value is last either way", () => {
  expect(ids("sort=acc")).toBe("h o a");
  expect(ids("sort=-acc")).toBe("o h a");
  expect(ids("sort=acc.paper")).toBe("a o h");
  expect(ids("sort=share")).toBe("h o a");
  expect(ids("sort=row")).toBe("a h o");
  expect(ids("sort=nothing")).toBe("o h a");
  const odd = table([row("x", "", [cell("nan", 2, "NaN"), cell(""), cell("")]), ...sample.rows]);
  expect(ids("sort=acc", odd)).toBe("h o x a");
});

test("numbers in names count as numbers, and equals stay as they are", () => {
  const names = table(["lr=10", "LR=2", "lr=2b", "lr=002", "lr"].map((id) => row(id, "", [])));
  names.columns = [];
  expect(ids("sort=row", names)).toBe("lr LR=2 lr=002 lr=2b lr=10");
  expect(ids("sort=-row", names)).toBe("lr=10 lr=2b LR=2 lr=002 lr");
  const signs = table(["a1", "a", "a-", "a=", "ab", "a1b", "a1-", "1"].map((id) => row(id, "", [])));
  signs.columns = [];
  expect(ids("sort=row", signs)).toBe("1 a a- a1 a1- a1b a= ab");
});

test("incomplete rows go, rows are found by all words of names, groups and settings", () => {
  expect(ids("complete=1")).toBe("o");
  expect(ids("find=msf")).toBe("h a");
  expect(ids("find=++SIMPLEST+msf")).toBe("a");
  expect(ids("find=qkkpw")).toBe("h");
  expect(ids("find=81.25")).toBe("");
  expect(ids("find=+")).toBe("o h a");
});

const said = (lines: Line[]) =>
  lines.map((line) =>
    line.kind === "row"
      ? line.row.id
      : line.kind === "group"
        ? `[${line.name} ${line.rows}]`
        : `?${line.place}`,
  );

test("groups have headings and fold, but not in an order of a column", () => {
  const grouped = table(
    sample.rows.map((one) => ({ ...one, group: one.id === "o" ? "Transformers" : "Mean shift" })),
  );
  expect(said(linesOf(grouped, grouped.rows, choose("")))).toEqual([
    "[Transformers 1]",
    "o",
    "[Mean shift 2]",
    "h",
    "a",
  ]);
  expect(said(linesOf(grouped, grouped.rows, choose("closed=Mean shift")))).toEqual([
    "[Transformers 1]",
    "o",
    "[Mean shift 2]",
  ]);
  expect(said(linesOf(grouped, grouped.rows, choose("sort=acc&closed=Mean shift")))).toEqual(["h", "o", "a"]);
  expect(said(linesOf(grouped, grouped.rows, choose("find=msf")))).toEqual(["[Mean shift 2]", "h", "a"]);
});

test("rows that were not read have their place, unless they would have to be chosen", () => {
  const some = [sample.rows[0], undefined, sample.rows[2]];
  expect(said(linesOf(sample, some, choose("")))).toEqual(["o", "?1", "a"]);
  expect(said(linesOf(sample, some, choose("sort=-params")))).toEqual(["o", "a"]);
});

test("what is printed is what is shown", () => {
  expect(printedPath("s", sample, "latex", choose(""))).toBe("/sweeps/s/printed?format=latex");
  expect(
    printedPath(
      "a b",
      sample,
      "markdown",
      choose("sort=-acc&without=loss&without=share&complete=1&find=x+y"),
    ),
  ).toBe("/sweeps/a%20b/printed?format=markdown&sort=-acc&without=share&complete=1&find=x+y");
  expect(printedPath("s", sample, "latex", choose("sort=gone"))).not.toContain("sort");
  expect(printedPath("s", sample, "latex", choose("parts=sd,paper"))).toContain("columns=value%2Cpaper");
  expect(printedPath("s", sample, "csv", choose("parts=sd,paper"))).not.toContain("columns");
});

test("what is printed has the form that is shown", () => {
  const ofFile = { ...sample, pivot: { by: "data.name", columns: ["acc"], picked: [] } };
  const path = (table: typeof sample) => printedPath("s", table, "csv", choose(""));
  expect(path(ofFile)).toBe("/sweeps/s/printed?format=csv&long_form=1");
  expect(path({ ...ofFile, pivoted: true })).toBe("/sweeps/s/printed?format=csv");
  const picked = { by: "groups, layout", columns: ["acc"], picked: ["m.groups", "m.layout"] };
  expect(path({ ...sample, pivoted: true, pivot: picked })).toBe(
    "/sweeps/s/printed?format=csv&pivot=m.groups%2Cm.layout",
  );
});

test("the form is in the address, and what was said of other columns goes with it", () => {
  const form = (query: string) => formOf(new URLSearchParams(query));
  expect(form("pivot=groups,layout&form=rows")).toEqual({ picked: ["groups", "layout"], asRows: false });
  expect(form("form=rows")).toEqual({ picked: [], asRows: true });
  expect(withForm(form("pivot=groups,layout"))).toEqual({
    pivot: "groups,layout",
    form: null,
    sort: null,
    without: [],
  });
  expect(isPivoted(sample, form("pivot=groups"))).toBe(true);
  expect(isPivoted(sample, form(""))).toBe(false);
});

test("the usual parts are not in the address, and nonsense is none", () => {
  expect(partsText(choose("").parts)).toBe(null);
  expect([...choose("parts=interval,rubbish,n").parts]).toEqual(["n", "interval"]);
  expect(partsText(new Set())).toBe("");
  expect(choose("parts=").parts.size).toBe(0);
});

test("rows are read a few times each, not at every comparison", () => {
  let reads = 0;
  const rows = Array.from({ length: 5000 }, (_, i) => {
    const one = row(`row=${(i * 7919) % 5000}`, "", [cell("", 2, i), cell(""), cell("")]);
    return new Proxy(one, { get: (of, name) => (++reads, Reflect.get(of, name)) });
  });
  const sorted = chosenRows(table(rows), rows, choose("sort=row"));
  expect(sorted[4999]!.id).toBe("row=4999");
  expect(reads).toBeLessThan(5000 * 4);
});
