// SPDX-License-Identifier: Apache-2.0
// What GET /sweeps/NAME and /sweeps/NAME/table answer: ablate.v1.SweepDetail and ablate.v1.Table.
import type { Real } from "../../format";
import type { SweepSummary, TrialCounts } from "../sweeps/data";

export interface TrialSummary {
  id: number;
  row: string;
  label: string;
  seed: string;
  state: string;
  reason: string;
  attempt: number;
  /** Newest run; 0 before the first. */
  run: number;
  worker: string;
  step: number;
  total_steps: number;
  steps_per_second: number;
  eta_seconds?: number;
  last: Record<string, Real>;
  /** Metrics that `last` has not, where all trials of an answer have too many. */
  metrics_left_out: number;
  shared: boolean;
  config_hash: string;
  /** Where the result is made before a correction of the trainer: what was mended. */
  before_mend: string;
  /** Completed, and without a metric that a column takes. */
  unfilled: boolean;
  /** Of its newest run: lines meant as metrics and not readable as such. */
  refused_lines: number;
  refused_example: string;
}

export interface SweepDetail {
  summary: SweepSummary;
  /** By row, then seed. */
  trials: TrialSummary[];
  text: string;
  file: string;
  /** Trials of other rows. */
  left_out: number;
}

export interface Column {
  name: string;
  heading: string;
  kind: "KIND_UNSPECIFIED" | "KIND_METRIC" | "KIND_COUNT" | "KIND_SETTING";
  source: string;
  take: string;
  unit: string;
  better: string;
  digits?: number;
  has_paper: boolean;
}

/** Whether a difference is more than the seeds' spread explains, as the server judges it. */
export interface Comparison {
  verdict:
    | "VERDICT_UNSPECIFIED"
    | "VERDICT_NOT_TOLD_APART"
    | "VERDICT_BETTER"
    | "VERDICT_WORSE"
    | "VERDICT_DIFFERENT";
  why: string;
  best: boolean;
  best_why: string;
}

export interface Cell {
  mean?: Real;
  sd?: Real;
  n: number;
  of: number;
  text: string;
  paper: string;
  missing: string;
  /** Completed trials that did not report the metric. */
  unfilled: number;
  /** Of the n values: made before a correction of the trainer. */
  before_mend: number;
  /** `not_finite`: points of the metric, where the value is the best or the mean of the others. */
  runs: { run: number; trial: number; seed: string; value: Real; not_finite: number }[];
  p?: number;
  comparison?: Comparison;
}

export interface TableRow {
  id: string;
  label: string;
  cells: Cell[];
  trials: TrialCounts;
}

export interface Table {
  sweep: string;
  columns: Column[];
  rows: TableRow[];
  baseline: string;
  paper_heading: string;
  /** What a reader should know: identical curves, results made before a correction, lines that were refused. */
  notes: string[];
  /** Rows of other pages; the baseline's is on each. */
  left_out: number;
}
