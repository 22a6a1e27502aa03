// SPDX-License-Identifier: Apache-2.0
import type { Order } from "../../../../components/sort";
import type { Cell, Column, Table, TableRow } from "../../../../generated/ablate";
import { isSampled, kParts, numeric, type Part, type Parts } from "./columns";
import { digestOf, placesIn } from "./places";

/**
 * Which rows and columns are shown, and in which order; the address keeps all of it. printing/selection.cc follows the same rules, so
 * what is copied is what is shown.
 */
export interface Choice {
  order: Order;
  /** Names of columns that are left out. */
  without: ReadonlySet<string>;
  parts: Parts;
  /** Only rows that have all of their values. */
  complete: boolean;
  /** Only rows that have each of these words. */
  find: string;
  /** Groups whose rows are folded away. */
  closed: ReadonlySet<string>;
  /** Only the rows with these ids, as brushed in a chart; undefined: all. */
  only?: ReadonlySet<string> | undefined;
  /** The same by their places in the file: 1. */
  kept?: Uint8Array | undefined;
}

const kUsual: readonly Part[] = ["sd", "n", "delta", "paper"];

/** The parts as the address has them: null where they are the usual ones. */
export function partsText(parts: Parts): string | null {
  const text = kParts.filter((part) => parts.has(part)).join(",");
  return text === kUsual.join(",") ? null : text;
}

export function choiceOf(query: URLSearchParams, order: Order): Choice {
  const parts = query.get("parts");
  return {
    order,
    without: new Set(query.getAll("without")),
    parts: new Set(parts === null ? kUsual : kParts.filter((part) => parts.split(",").includes(part))),
    complete: query.get("complete") === "1",
    find: query.get("find") ?? "",
    closed: new Set(query.getAll("closed")),
  };
}

/** The part of the address that a choice is made from. */
export function choiceText(query: URLSearchParams): string {
  return ["sort", "without", "parts", "complete", "find", "closed"]
    .map((name) => query.getAll(name).join("\n"))
    .join("\n\n");
}

/** Whether it takes all rows to know which are shown where. */
export function needsAll(choice: Choice): boolean {
  return (
    choice.order.column !== null ||
    choice.complete ||
    choice.only !== undefined ||
    wordsOf(choice.find).length > 0
  );
}

/** Of letters the ASCII ones alone, as the server does. */
function lower(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

function wordsOf(text: string): string[] {
  return lower(text)
    .split(/[ \t\n]+/)
    .filter(Boolean);
}

/** A name for comparing: pieces without digits, and the numbers between them, as digits without zeros in front. */
type Name = readonly string[];

function nameOf(text: string): Name {
  return lower(text)
    .split(/([0-9]+)/)
    .map((piece, i) => (i % 2 === 1 ? piece.replace(/^0+/, "") : piece));
}

/** "lr=2" before "lr=10". */
function compareNaturally(a: Name, b: Name): number {
  for (let i = 0; i < a.length && i < b.length; ++i) {
    const [x, y] = [a[i]!, b[i]!];
    if (x === y) continue;
    if (i % 2 === 1) return x.length !== y.length ? x.length - y.length : x < y ? -1 : 1;
    // where one goes on with a number, its first digit stands against the other's next letter
    if (y.startsWith(x)) return a.length > i + 1 ? (y[x.length]! > "9" ? -1 : 1) : -1;
    if (x.startsWith(y)) return b.length > i + 1 ? (x[y.length]! > "9" ? 1 : -1) : 1;
    return x < y ? -1 : 1;
  }
  return a.length - b.length;
}

/** The number that a printed value begins with. */
function printed(text: string): number | undefined {
  const number = Number.parseFloat(text);
  return Number.isFinite(number) ? number : undefined;
}

type Key = number | Name | undefined;

/** What rows are ordered by; nothing where there is no such column. */
function keyOf(table: Table, wanted: string): ((row: TableRow) => Key) | undefined {
  const place = (name: string): number => table.columns.findIndex((column) => column.name === name);
  const at = place(wanted);
  if (at >= 0) {
    const setting = table.columns[at]!.kind === "KIND_SETTING";
    return (row) => (setting ? nameOf(row.cells[at]!.text) : numeric(row.cells[at]));
  }
  const paper = wanted.endsWith(".paper") ? place(wanted.slice(0, -".paper".length)) : -1;
  if (paper >= 0) return (row) => printed(row.cells[paper]!.paper);
  return wanted === "row" ? (row) => nameOf(row.id) : undefined;
}

/** Whether the table can be sorted by this. */
export function canSort(table: Table, wanted: string): boolean {
  return keyOf(table, wanted) !== undefined;
}

/** What has no value comes last either way, equals stay as they are. */
function sort(rows: TableRow[], key: (row: TableRow) => Key, descending: boolean): TableRow[] {
  const keyed = rows.map((row) => ({ row, key: key(row) }));
  const sign = descending ? -1 : 1;
  keyed.sort((a, b) => {
    if (a.key === undefined || b.key === undefined)
      return Number(a.key === undefined) - Number(b.key === undefined);
    if (typeof a.key === "number" && typeof b.key === "number") return sign * (a.key - b.key);
    return sign * compareNaturally(a.key as Name, b.key as Name);
  });
  return keyed.map(({ row }) => row);
}

export function lacks(cell: Cell): boolean {
  return cell.n < cell.of || cell.unfilled > 0;
}

function isComplete(columns: Column[], row: TableRow): boolean {
  return columns.every((column, i) => !isSampled(column) || !lacks(row.cells[i]!));
}

function hasWords(columns: Column[], row: TableRow, words: string[]): boolean {
  const settings = row.cells.filter((_, i) => columns[i]!.kind === "KIND_SETTING").map((cell) => cell.text);
  const text = lower([row.id, row.label, row.group, ...settings].join("\n"));
  return words.every((word) => text.includes(word));
}

/** Whether a row is one of these; a line of a pivoted table: whether one of its rows is. */
function hasOneOf(ids: ReadonlySet<string>, row: TableRow): boolean {
  return ids.has(row.id) || row.cells.some((cell) => cell.row && ids.has(cell.row));
}

/** The rows that are chosen, in the order that is. */
export function chosenRows(table: Table, rows: readonly TableRow[], choice: Choice): TableRow[] {
  const words = wordsOf(choice.find);
  const kept = rows.filter(
    (row) =>
      (!choice.only || hasOneOf(choice.only, row)) &&
      (!choice.complete || isComplete(table.columns, row)) &&
      (words.length === 0 || hasWords(table.columns, row, words)),
  );
  const key = choice.order.column === null ? undefined : keyOf(table, choice.order.column);
  return key ? sort(kept, key, choice.order.descending) : kept;
}

/** What a line of the table is: a row, one that was not read yet, or the heading of a group. */
export type Line =
  | { kind: "row"; row: TableRow }
  | { kind: "unread"; place: number }
  | { kind: "group"; name: string; rows: number; closed: boolean };

/** `rows`: of the whole table in their order, those that were read. */
export function linesOf(table: Table, rows: readonly (TableRow | undefined)[], choice: Choice): Line[] {
  const read = rows.filter((row) => row !== undefined);
  const sorted = choice.order.column !== null && canSort(table, choice.order.column);
  if (needsAll(choice)) {
    const chosen = chosenRows(table, read, choice);
    return sorted ? chosen.map((row) => ({ kind: "row", row })) : withGroups(chosen, choice.closed);
  }
  return withGroups(rows, choice.closed);
}

function withGroups(rows: readonly (TableRow | undefined)[], closed: ReadonlySet<string>): Line[] {
  const lines: Line[] = [];
  let group = "";
  let heading: Extract<Line, { kind: "group" }> | undefined;
  rows.forEach((row, place) => {
    if (row && row.group !== group) {
      group = row.group;
      heading = undefined;
      if (group) lines.push((heading = { kind: "group", name: group, rows: 0, closed: closed.has(group) }));
    }
    if (heading) ++heading.rows;
    if (heading?.closed) return;
    lines.push(row ? { kind: "row", row } : { kind: "unread", place });
  });
  return lines;
}

export type Format = "latex" | "markdown" | "csv" | "html" | "text";

/** The table that is shown, printed by the server: below /api/v1. */
export function printedPath(sweep: string, table: Table, format: Format, choice: Choice): string {
  const query = new URLSearchParams({ format });
  if (choice.order.column !== null && canSort(table, choice.order.column))
    query.set("sort", (choice.order.descending ? "-" : "") + choice.order.column);
  for (const column of table.columns)
    if (choice.without.has(column.name)) query.append("without", column.name);
  if (choice.complete) query.set("complete", "1");
  if (choice.find) query.set("find", choice.find);
  if (choice.only && choice.kept) {
    query.set("places", placesIn(choice.kept));
    query.set("ids", digestOf(choice.only));
  }
  if (table.pivoted && table.pivot!.picked.length > 0) query.set("pivot", table.pivot!.picked.join(","));
  else if (table.pivot && !table.pivoted) query.set("long_form", "1");
  const shown = (["n", "paper"] as const).filter((part) => choice.parts.has(part));
  if (format !== "csv" && shown.length < 2)
    query.set(
      "columns",
      ["value", ...shown, ...(table.show.includes("difference") ? ["difference"] : [])].join(","),
    );
  return `/sweeps/${encodeURIComponent(sweep)}/printed?${query}`;
}
