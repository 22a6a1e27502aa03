// SPDX-License-Identifier: Apache-2.0
import { meanSd, t95 } from "../../../../curves/spread";
import { plural, pText } from "../../../../format";
import { decides, varyTogether, type Axis, type Frame, type Seeds } from "./frame";

export interface LevelMean {
  level: string;
  /** Rows at the level, and those of them that the mean is of. */
  of: number;
  n: number;
  mean: number | undefined;
  /** 95 % interval of the mean over other seeds (t); undefined where no row has two seeds. */
  low: number | undefined;
  high: number | undefined;
}

export interface Effect {
  axis: Axis;
  levels: LevelMean[];
  /** Over which rows its levels are averaged, where that is not over all. */
  over: string;
  /** Why it has no means, or empty. */
  none: string;
  /** Eta squared; undefined: `why` it is not warranted. */
  share: number | undefined;
  why: string;
  /** What the share would be on average if the setting had no effect: (levels − 1) / (rows − 1). */
  byChance: number;
}

export interface Effects {
  effects: Effect[];
  /** Rows with a value, of how many. */
  n: number;
  of: number;
  broken: number;
  mean: number | undefined;
  /** Degrees of freedom of the intervals; 0: no row has two seeds. */
  degrees: number;
  /** Settings of which one's effect depends on the other's level. */
  together: string[];
  /** Of what the analysis of variance of the table gives shares; empty: there is none. */
  anova: string;
  /** What a reader must know of the design. */
  notes: string[];
  /** Why there is nothing to show, or empty. */
  why: string;
}

/** More levels than this are not drawn: they are names, not settings. */
export const kMostLevels = 60;
const kMostListed = 3;
/** Pairs of settings are compared for balance. */
const kMostSettings = 20;

/**
 * For each setting the mean of a metric at each level, over the same combinations of the other settings, and eta squared, the share of the
 * spread between rows that the setting explains alone: Σ n_l (m_l − m)² / Σ (y − m)². A row counts once, by the mean of its seeds.
 */
export function effectsOf(frame: Frame, metric: Axis): Effects {
  const values = frame.values(metric);
  const rows = [...values.keys()].filter((i) => !Number.isNaN(values[i]!));
  const broken = [...values.keys()].filter((i) => Number.isNaN(values[i]!) && frame.isBroken(metric, i));
  const found: Effects = {
    effects: [],
    n: rows.length,
    of: frame.rows.length,
    broken: broken.length,
    mean: meanSd(rows.map((i) => values[i]!)).mean ?? undefined,
    degrees: 0,
    together: [],
    anova: "",
    notes: [],
    why: "",
  };
  if (frame.settings.length === 0)
    found.why = "The rows of this table differ in no setting that the table knows.";
  else if (rows.length === 0)
    found.why = `No row has a value of ${metric.title}${broken.length > 0 ? `; ${broken.length} diverged or gave NaN` : ""}.`;
  if (found.why) return found;
  const seeds = frame.seeds(metric);
  const noise = noiseOf(seeds, rows);
  found.degrees = noise.degrees;
  found.effects = frame.settings.map((axis) => effectOf(frame, axis, values, seeds, noise));
  found.effects.sort((a, b) => (b.share ?? -1) - (a.share ?? -1));
  const anova = frame.table.factor_analyses?.find(({ column }) => column === metric.column?.name);
  if (anova && anova.effects.length > 0) {
    found.anova =
      "The analysis of variance below the table is of the values of all seeds, and of what a setting explains beyond the others: its η² differ.";
    const alpha = Number(frame.table.compare?.alpha ?? 0.05);
    const pairs = anova.effects
      .filter(({ factors, p }) => factors.length === 2 && p !== undefined && Number(p) < alpha)
      .sort((a, b) => Number(a.p) - Number(b.p));
    found.together = pairs
      .slice(0, kMostListed)
      .map(
        ({ factors: [a, b], p }) =>
          `${a} × ${b}: p ${pText(Number(p))} in the analysis of variance: what ${b} does depends on ${a}.`,
      );
    if (pairs.length > kMostListed)
      found.together.push(`${pairs.length - kMostListed} more pairs of settings depend on each other.`);
  }
  found.notes = notesOf(frame, rows);
  return found;
}

interface Noise {
  variance: number;
  degrees: number;
}

/** The variance of the seeds within rows, pooled: Σ (n − 1) sd² / Σ (n − 1). */
function noiseOf({ n, sd }: Seeds, rows: number[]): Noise {
  let [squares, degrees] = [0, 0];
  for (const i of rows) {
    if (!(n[i]! > 1) || Number.isNaN(sd[i]!)) continue;
    degrees += n[i]! - 1;
    squares += (n[i]! - 1) * sd[i]! ** 2;
  }
  return { variance: squares / degrees, degrees };
}

function effectOf(frame: Frame, axis: Axis, values: Float64Array, seeds: Seeds, noise: Noise): Effect {
  const own = frame.levels(axis);
  const { names, of } = own;
  // what has one level at each of the setting's cannot be held fixed: it goes with it
  const all = frame.settings.filter((other) => other !== axis);
  const others = all.filter((other) => !decides(own, frame.levels(other)));
  const bound = all.filter((other) => !others.includes(other) && !varyTogether(own, frame.levels(other)));
  const columns = others.map((other) => frame.levels(other).of);
  const at: number[][] = names.map(() => []);
  const counts = names.map(() => 0);
  /** Of each combination of the other settings the rows at each level. */
  const cells = new Map<string, Map<number, number[]>>();
  for (let i = 0; i < of.length; ++i) {
    const level = of[i]!;
    if (level < 0) continue;
    ++counts[level]!;
    if (Number.isNaN(values[i]!)) continue;
    at[level]!.push(i);
    const key = columns.map((column) => column[i]).join();
    let cell = cells.get(key);
    if (!cell) cells.set(key, (cell = new Map()));
    const rows = cell.get(level);
    if (rows) rows.push(i);
    else cell.set(level, [i]);
  }
  const filled = at.filter((rows) => rows.length > 0);
  const full = [...cells.values()].filter(({ size }) => size === filled.length);
  const isEven =
    full.length === cells.size &&
    full.every((cell) => new Set([...cell.values()].map(({ length }) => length)).size === 1);
  const effect: Effect = { axis, levels: [], over: "", none: "", share: undefined, why: "", byChance: 0 };
  if (!isEven && full.length === 0)
    effect.none = "no means: no combination of the other settings has a value at every level";
  else if (full.length < cells.size)
    effect.over = `over the ${plural(full.length, "combination")} of the other settings that every level has, of ${cells.size}`;
  else if (!isEven && full.length > 1) effect.over = "each combination of the other settings counts once";
  if (bound.length > 0 && !effect.none)
    effect.over = [effect.over, `with what follows from it: ${list(bound.map(({ title }) => title))}`]
      .filter(Boolean)
      .join("; ");
  effect.levels = names.map((level, place): LevelMean => {
    const groups = isEven ? at[place]!.map((row) => [row]) : full.map((cell) => cell.get(place) ?? []);
    const rows = groups.flat();
    if (rows.length === 0)
      return { level, of: counts[place]!, n: 0, mean: undefined, low: undefined, high: undefined };
    let [sum, spread] = [0, 0];
    for (const group of groups)
      for (const row of group) {
        sum += values[row]! / group.length;
        spread += 1 / group.length ** 2 / seeds.n[row]!;
      }
    const mean = sum / groups.length;
    const half = (t95(noise.degrees) * Math.sqrt(noise.variance * spread)) / groups.length;
    const is = noise.degrees > 0;
    return {
      level,
      of: counts[place]!,
      n: rows.length,
      mean,
      low: is ? mean - half : undefined,
      high: is ? mean + half : undefined,
    };
  });
  const known = at.flat().map((row) => values[row]!);
  effect.byChance = known.length > 1 ? (filled.length - 1) / (known.length - 1) : 0;
  const { mean } = meanSd(known);
  const total = known.reduce((sum, value) => sum + (value - mean!) ** 2, 0);
  if (known.length < 3) effect.why = "fewer than three rows have a value";
  else if (filled.length < 2) effect.why = "only one level has values";
  else if (filled.length === known.length)
    effect.why = "each level has one row: it would explain all, whatever the values";
  else if (!(total > 0)) effect.why = "all rows have the same value";
  else {
    const between = filled.reduce(
      (sum, rows) => sum + rows.length * (meanSd(rows.map((row) => values[row]!)).mean! - mean!) ** 2,
      0,
    );
    effect.share = Math.min(1, between / total);
  }
  return effect;
}

/** Whether each level of one setting stands equally often with each level of every other, in the rows with a value. */
function notesOf(frame: Frame, rows: number[]): string[] {
  const settings = frame.settings.slice(0, kMostSettings);
  const together: string[] = [];
  const unbalanced: string[] = [];
  const all = frame.rows.map((_, i) => i);
  let byMissing = false;
  for (const [i, a] of settings.entries())
    for (const b of settings.slice(i + 1)) {
      if (varyTogether(frame.levels(a), frame.levels(b))) together.push(`${a.title} and ${b.title}`);
      else if (isBalanced(frame, a, b, rows)) continue;
      else if (isBalanced(frame, a, b, all)) byMissing = true;
      else unbalanced.push(`${a.title} and ${b.title}`);
    }
  const notes: string[] = [];
  if (together.length > 0)
    notes.push(`${list(together)} always change together: their effects cannot be told apart.`);
  if (unbalanced.length > 0)
    notes.push(
      `The design is not balanced (${list(unbalanced)}): a share then holds a part of what other settings explain, and the shares overlap.`,
    );
  else if (byMissing)
    notes.push("The design is balanced but for the rows without a value: the shares may overlap.");
  if (frame.settings.length > settings.length)
    notes.push(`Balance was looked at for the first ${kMostSettings} settings.`);
  return notes;
}

function isBalanced(frame: Frame, a: Axis, b: Axis, rows: number[]): boolean {
  const [x, y] = [frame.levels(a), frame.levels(b)];
  if (x.names.length * y.names.length > 1e6) return false;
  const counts = new Float64Array(x.names.length * y.names.length);
  const [ofA, ofB] = [new Float64Array(x.names.length), new Float64Array(y.names.length)];
  let n = 0;
  for (const row of rows) {
    const [p, q] = [x.of[row]!, y.of[row]!];
    if (p < 0 || q < 0) continue;
    ++counts[p * y.names.length + q]!;
    ++ofA[p]!;
    ++ofB[q]!;
    ++n;
  }
  return counts.every(
    (count, i) => count * n === ofA[Math.floor(i / y.names.length)]! * ofB[i % y.names.length]!,
  );
}

function list(names: string[]): string {
  const more = names.length - kMostListed;
  return names.slice(0, kMostListed).join("; ") + (more > 0 ? `; and ${more} more` : "");
}
