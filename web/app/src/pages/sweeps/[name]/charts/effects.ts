// SPDX-License-Identifier: Apache-2.0
import { meanSd, t95 } from "../../../../curves/spread";
import { varyTogether, type Axis, type Frame } from "./frame";

export interface LevelMean {
  level: string;
  /** Rows at the level, and those of them that have a value. */
  of: number;
  n: number;
  mean: number | undefined;
  /** 95 % interval of the mean (t); undefined below two rows. */
  low: number | undefined;
  high: number | undefined;
}

export interface Effect {
  axis: Axis;
  levels: LevelMean[];
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
  /** What a reader must know of the design. */
  notes: string[];
  /** Why there is nothing to show, or empty. */
  why: string;
}

/** More levels than this are not drawn: they are names, not settings. */
export const kMostLevels = 60;
/** Pairs of settings are compared for balance. */
const kMostSettings = 20;

/**
 * For each setting the mean of a metric at each level, and eta squared, the share of the spread between rows that the setting explains
 * alone: Σ n_l (m_l − m)² / Σ (y − m)². A row counts once, by the mean of its seeds.
 */
export function effectsOf(frame: Frame, metric: Axis): Effects {
  const values = frame.values(metric);
  const rows = [...values.keys()].filter((i) => !Number.isNaN(values[i]!));
  const broken = [...values.keys()].filter((i) => frame.isBroken(metric, i)).length;
  const found: Effects = {
    effects: [],
    n: rows.length,
    of: frame.rows.length,
    broken,
    mean: meanSd(rows.map((i) => values[i]!)).mean ?? undefined,
    notes: [],
    why: "",
  };
  if (frame.settings.length === 0)
    found.why = "The rows of this table differ in no setting that the table knows.";
  else if (rows.length === 0)
    found.why = `No row has a value of ${metric.title}${broken > 0 ? `; ${broken} diverged or gave NaN` : ""}.`;
  if (found.why) return found;
  found.effects = frame.settings.map((axis) => effectOf(frame, axis, values));
  found.effects.sort((a, b) => (b.share ?? -1) - (a.share ?? -1));
  found.notes = notesOf(frame, rows);
  return found;
}

function effectOf(frame: Frame, axis: Axis, values: Float64Array): Effect {
  const { names, of } = frame.levels(axis);
  const at: number[][] = names.map(() => []);
  const counts = names.map(() => 0);
  for (let i = 0; i < of.length; ++i) {
    if (of[i]! < 0) continue;
    ++counts[of[i]!]!;
    if (!Number.isNaN(values[i]!)) at[of[i]!]!.push(values[i]!);
  }
  const levels = names.map((level, i): LevelMean => {
    const { mean, sd } = meanSd(at[i]!);
    const n = at[i]!.length;
    const half = sd === null ? undefined : (t95(n - 1) * sd) / Math.sqrt(n);
    const [low, high] =
      half === undefined || mean === null ? [undefined, undefined] : [mean - half, mean + half];
    return { level, of: counts[i]!, n, mean: mean ?? undefined, low, high };
  });
  const all = at.flat();
  const filled = at.filter((own) => own.length > 0);
  const byChance = all.length > 1 ? (filled.length - 1) / (all.length - 1) : 0;
  const effect: Effect = { axis, levels, share: undefined, why: "", byChance };
  const { mean } = meanSd(all);
  const total = all.reduce((sum, value) => sum + (value - mean!) ** 2, 0);
  if (all.length < 3) effect.why = "fewer than three rows have a value";
  else if (filled.length < 2) effect.why = "only one level has values";
  else if (filled.length === all.length)
    effect.why = "each level has one row: it would explain all, whatever the values";
  else if (!(total > 0)) effect.why = "all rows have the same value";
  else {
    const between = filled.reduce((sum, own) => sum + own.length * (meanSd(own).mean! - mean!) ** 2, 0);
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

const kMostListed = 3;
function list(names: string[]): string {
  const more = names.length - kMostListed;
  return names.slice(0, kMostListed).join("; ") + (more > 0 ? `; and ${more} more` : "");
}
