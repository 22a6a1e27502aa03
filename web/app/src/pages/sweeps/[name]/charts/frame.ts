// SPDX-License-Identifier: Apache-2.0
import { fixed, plain, withMinus } from "../../../../format";
import type { Cell, Column, Real, Table, TableRow } from "../../../../generated/ablate";
import { headingOf, inUnit, isSampled, numeric } from "../table/columns";

/** What a chart can show of rows: a column of the table, or a setting that the rows' names say. */
export interface Axis {
  /** As the address has it. */
  key: string;
  title: string;
  kind: "metric" | "count" | "setting";
  /** Place of its column in the table; -1: it is of the rows' names or groups. */
  place: number;
  column: Column | undefined;
}

/** A setting's levels, and which of them each row has. */
export interface Levels {
  names: string[];
  /** Of each row the place of its level; -1: the table does not say it. */
  of: Int32Array;
  /** The levels as numbers, where all of them are. */
  numbers: number[] | undefined;
}

export type Spread = "sd" | "se" | "ci" | "none";

export interface Bounds {
  /** NaN: not known. */
  low: Float64Array;
  high: Float64Array;
}

/** Of each row how many seeds its value is of, and their deviation in the unit of the value; NaN: not known. */
export interface Seeds {
  n: Float64Array;
  sd: Float64Array;
}

/** What stands for a factor in a row where it does not apply. */
export const kNotApplied = "–";
const kByName = "factor.";
const kGroup = "row.group";
const kRow = "row";

/**
 * The whole table by columns of numbers and levels. Each cell is read once, however often a chart is drawn or rows are brushed. Rows are
 * known by their places.
 */
export class Frame {
  readonly axes: readonly Axis[];
  /** Settings with two levels or more. */
  readonly settings: readonly Axis[];
  readonly metrics: readonly Axis[];
  /** What has numbers: metrics, counts, and settings whose levels are numbers. */
  readonly numbers: readonly Axis[];
  readonly places: ReadonlyMap<string, number>;
  private readonly valuesOf = new Map<string, Float64Array>();
  private readonly levelsOf = new Map<string, Levels>();
  private readonly boundsOf = new Map<string, Bounds>();
  private readonly seedsOf = new Map<string, Seeds>();

  constructor(
    readonly table: Table,
    readonly rows: readonly TableRow[],
  ) {
    this.places = new Map(rows.map((row, place) => [row.id, place]));
    const ofColumns = table.columns.flatMap((column, place): Axis[] => {
      const kind = kKinds[column.kind];
      return kind ? [{ key: column.name, title: headingOf(column), kind, place, column }] : [];
    });
    const taken = new Set(ofColumns.map(({ key }) => key));
    const ofNames = this.readNames().filter(({ key }) => !taken.has(key));
    this.axes = [
      ...ofColumns,
      ...ofNames.filter((axis) => !ofColumns.some((other) => this.isSame(axis, other))),
    ];
    this.settings = this.axes.filter((axis) => axis.kind === "setting" && this.levels(axis).names.length > 1);
    this.metrics = this.axes.filter(({ kind }) => kind === "metric");
    this.numbers = this.axes.filter((axis) =>
      axis.kind === "setting" ? this.settings.includes(axis) && this.levels(axis).numbers : true,
    );
  }

  axis(key: string | null): Axis | undefined {
    return this.axes.find((axis) => axis.key === key);
  }

  /** Of each row its value in the unit that the column is shown in; NaN: it has none. */
  values(axis: Axis): Float64Array {
    return kept(this.valuesOf, `value of ${axis.key}`, () => {
      if (axis.kind === "setting") {
        const { of, numbers } = this.levels(axis);
        return Float64Array.from(of, (level) => (level < 0 ? NaN : (numbers?.[level] ?? NaN)));
      }
      return Float64Array.from(this.rows, ({ cells }) => {
        const value = numeric(cells[axis.place]);
        return value === undefined ? NaN : inUnit(value, axis.column!);
      });
    });
  }

  levels(axis: Axis): Levels {
    return kept(this.levelsOf, axis.key, () =>
      levelsOf(this.rows.map(({ cells }) => cells[axis.place]?.text ?? "")),
    );
  }

  /** Of each row the ends of its interval. */
  bounds(axis: Axis, spread: Spread): Bounds {
    return kept(this.boundsOf, `${spread} ${axis.key}`, () => {
      const bounds = {
        low: new Float64Array(this.rows.length).fill(NaN),
        high: new Float64Array(this.rows.length).fill(NaN),
      };
      if (!axis.column || !isSampled(axis.column)) return bounds;
      this.rows.forEach(({ cells }, i) => {
        const ends = intervalOf(cells[axis.place]!, spread);
        bounds.low[i] = ends ? inUnit(ends[0], axis.column!) : NaN;
        bounds.high[i] = ends ? inUnit(ends[1], axis.column!) : NaN;
      });
      return bounds;
    });
  }

  seeds(axis: Axis): Seeds {
    return kept(this.seedsOf, axis.key, () => {
      const seeds = {
        n: new Float64Array(this.rows.length).fill(1),
        sd: new Float64Array(this.rows.length).fill(NaN),
      };
      this.rows.forEach(({ cells }, i) => {
        const cell = cells[axis.place];
        if (!cell || !axis.column) return;
        seeds.n[i] = cell.n || 1;
        if (typeof cell.sd === "number") seeds.sd[i] = inUnit(cell.sd, axis.column);
      });
      return seeds;
    });
  }

  /** Why a row has no value there; undefined: it has one. */
  whyNot(axis: Axis, row: number): string | undefined {
    if (axis.kind === "setting") return this.levels(axis).of[row]! < 0 ? "not known" : undefined;
    const cell = this.rows[row]?.cells[axis.place];
    return cell && numeric(cell) === undefined ? whyNone(cell) : undefined;
  }

  /** Whether a row's value is not a number because its runs diverged, and not because they are still to come. */
  isBroken(axis: Axis, row: number): boolean {
    const cell = axis.kind === "setting" ? undefined : this.rows[row]?.cells[axis.place];
    return (
      cell !== undefined && numeric(cell) === undefined && (isBad(cell.mean) || cell.diverged.length > 0)
    );
  }

  /** Of each row what the paper prints there, as a number. */
  papers(axis: Axis): Float64Array {
    return kept(this.valuesOf, `paper of ${axis.key}`, () =>
      Float64Array.from(this.rows, ({ cells }) => printedNumber(cells[axis.place]?.paper ?? "") ?? NaN),
    );
  }

  /** Of each row the value of the row that it is compared with; of a baseline its own. */
  bases(axis: Axis): Float64Array {
    return kept(this.valuesOf, `baseline of ${axis.key}`, () => {
      const values = this.values(axis);
      return values.map((_, row) => values[this.isBaseline(row) ? row : (this.baseline(row) ?? -1)] ?? NaN);
    });
  }

  /** The place of the row that one is compared with; undefined: there is none, or it is that one. */
  baseline(row: number): number | undefined {
    const { id, baseline } = this.rows[row]!;
    const name = baseline || (this.table.pivot ? "" : this.table.baseline);
    return name === id ? undefined : this.places.get(name);
  }

  isBaseline(row: number): boolean {
    const { id, baseline } = this.rows[row]!;
    return id === (baseline || (this.table.pivot ? "" : this.table.baseline));
  }

  /** "79.79": in as many digits as the column has; of a count without a unit, which is whole, in none. */
  text(axis: Axis, value: number): string {
    if (axis.kind === "count" && !axis.column?.unit && Number.isInteger(value)) return plain(value);
    if (axis.column?.digits !== undefined && Math.abs(value) < 1e7) return fixed(value, axis.column.digits);
    return plain(value);
  }

  /** "79.79 ± 0.12", "dot", or why there is nothing. */
  cellText(axis: Axis, row: number): string {
    if (axis.kind === "setting") {
      const { names, of } = this.levels(axis);
      return names[of[row]!] ?? "not known";
    }
    const cell = this.rows[row]!.cells[axis.place]!;
    const value = this.values(axis)[row]!;
    return Number.isNaN(value) ? whyNone(cell) : withMinus(cell.text);
  }

  /** Settings that are known by the names of rows: "groups=2,layout=block", "vit-s,epochs=300", and their groups. */
  private readNames(): Axis[] {
    const found = new Map<string, string[]>();
    const put = (key: string, row: number, level: string): void => {
      let levels = found.get(key);
      if (!levels) found.set(key, (levels = new Array<string>(this.rows.length).fill(kNotApplied)));
      levels[row] = level;
    };
    const named = this.rows.map(({ id }) => levelsIn(id));
    if (named.every((levels) => levels !== undefined))
      named.forEach((levels, row) => levels.forEach(([factor, level]) => put(factor, row, level)));
    if ([...found.keys()].every((key) => key === kRow)) found.clear(); // ids that name no factor
    const axes = [...found].map(([factor, levels]): Axis => {
      const key = factor === kRow ? "row.name" : kByName + factor;
      this.levelsOf.set(key, levelsOf(levels));
      return {
        key,
        title: factor === kRow ? "row" : factor,
        kind: "setting",
        place: -1,
        column: undefined,
      };
    });
    if (this.rows.some(({ group }) => group !== "")) {
      this.levelsOf.set(kGroup, levelsOf(this.rows.map(({ group }) => group || kNotApplied)));
      axes.push({ key: kGroup, title: "group", kind: "setting", place: -1, column: undefined });
    }
    return axes;
  }

  /** Whether a setting of the names is a column as well: `lr` is `recipe.lr`, and has the same rows at each level. */
  private isSame(axis: Axis, column: Axis): boolean {
    const source = column.column?.source ?? "";
    if (column.kind !== "setting" || (source !== axis.title && !source.endsWith(`.${axis.title}`)))
      return false;
    return varyTogether(this.levels(axis), this.levels(column));
  }
}

const kKinds: Partial<Record<Column["kind"], Axis["kind"]>> = {
  KIND_METRIC: "metric",
  KIND_EXPRESSION: "metric",
  KIND_COUNT: "count",
  KIND_SETTING: "setting",
};

function kept<T>(all: Map<string, T>, key: string, make: () => T): T {
  let one = all.get(key);
  if (one === undefined) all.set(key, (one = make()));
  return one;
}

/** Factors and levels that an id is made of (sweeps/combine.cc makes them); undefined: it is made otherwise. */
export function levelsIn(id: string): [string, string][] | undefined {
  if (id === "base") return [];
  const levels: [string, string][] = [];
  for (const [i, piece] of id.split(",").entries()) {
    const equals = piece.indexOf("=");
    if (equals > 0) levels.push([piece.slice(0, equals), piece.slice(equals + 1)]);
    else if (i === 0) levels.push([kRow, piece]);
    else return undefined;
  }
  return levels;
}

/** Numbers in their order, other levels in that of the rows. An empty text is no level. */
export function levelsOf(texts: readonly string[]): Levels {
  const seen = new Map<string, number>();
  const of = Int32Array.from(texts, (text) => {
    if (text === "") return -1;
    let place = seen.get(text);
    if (place === undefined) seen.set(text, (place = seen.size));
    return place;
  });
  const names = [...seen.keys()];
  const numbers = names.map((name) => (name.trim() === "" ? NaN : Number(name)));
  if (names.length === 0 || !numbers.every(Number.isFinite)) return { names, of, numbers: undefined };
  const order = names.map((_, i) => i).sort((a, b) => numbers[a]! - numbers[b]!);
  const rank = new Int32Array(names.length);
  order.forEach((place, i) => (rank[place] = i));
  return {
    names: order.map((i) => names[i]!),
    of: of.map((place) => (place < 0 ? -1 : rank[place]!)),
    numbers: order.map((i) => numbers[i]!),
  };
}

/** Whether each level of a setting has one level of another alone. */
export function decides(a: Levels, b: Levels): boolean {
  const there = new Int32Array(a.names.length + 1).fill(-2);
  return b.of.every((level, i) => {
    const own = a.of[i]! + 1;
    if (there[own] === -2) there[own] = level;
    return there[own] === level;
  });
}

/** Whether two settings have the same rows at each level: no table can tell their effects apart. */
export function varyTogether(a: Levels, b: Levels): boolean {
  return a.names.length === b.names.length && decides(a, b) && decides(b, a);
}

function intervalOf(cell: Cell, spread: Spread): [number, number] | undefined {
  const mean = numeric(cell);
  if (mean === undefined || spread === "none") return undefined;
  const ends = (low: Real, high: Real): [number, number] | undefined =>
    typeof low === "number" && typeof high === "number" ? [low, high] : undefined;
  if (spread === "ci") {
    const interval = cell.statistics?.interval;
    return interval && ends(interval.low, interval.high);
  }
  if (typeof cell.sd !== "number" || cell.n < 2) return undefined;
  const half = spread === "sd" ? cell.sd : cell.sd / Math.sqrt(cell.n);
  return [mean - half, mean + half];
}

function isBad(mean: Real | undefined): boolean {
  return mean !== undefined && typeof mean !== "number";
}

function whyNone(cell: Cell): string {
  if (cell.diverged.length > 0)
    return `diverged (${cell.diverged.length === 1 ? "seed" : "seeds"} ${cell.diverged.join(", ")})`;
  if (isBad(cell.mean)) return cell.mean === "NaN" ? "NaN" : plain(cell.mean);
  return cell.missing || "no value yet";
}

/** "78.90", "−0.3", "79.8 ± 0.1", "81.2 %"; undefined where a text is no number. */
export function printedNumber(text: string): number | undefined {
  if (text === "") return undefined;
  const match = /^\s*([-+\u2212]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)\s*(?:%|±.*|\(.*\))?\s*$/i.exec(text);
  return match ? Number(match[1]!.replace("\u2212", "-")) : undefined;
}
