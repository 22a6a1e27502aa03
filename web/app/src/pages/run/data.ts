// SPDX-License-Identifier: Apache-2.0
// What GET /runs/ID answers: ablate.v1.RunDetail.
import type { Real } from "../../format";

export interface MetricSummary {
  name: string;
  count: number;
  min: Real;
  max: Real;
  mean: Real;
  last: Real;
  last_step: number;
  best: Real;
  best_step: number;
  /** Of `count` points; minimum, maximum, mean and best are of these. */
  finite: number;
}

export interface RunSummary {
  id: number;
  trial: number;
  attempt: number;
  state: string;
  worker: string;
  host: string;
  leased?: string;
  started?: string;
  ended?: string;
  reason: string;
  step: number;
  total_steps: number;
  steps_per_second: number;
  resumed_from_step?: number;
  bit_exact: boolean;
  rows: { sweep: string; row: string; label: string; seed: string }[];
  metrics: MetricSummary[];
  refused_lines: number;
  refused_example: string;
  repeated_points: number;
}

export interface Checkpoint {
  run?: number;
  step: number;
  host: string;
  path: string;
  sha256: string;
}

export interface RunDetail {
  summary: RunSummary;
  config_json: string;
  config_hash: string;
  result_version: number;
  data_fingerprint: string;
  directory: string;
  exit_code?: number;
  signal?: number;
  /** A 64-bit number: a string in JSON. */
  log_bytes: string;
  log_tail: string;
  checkpoints: Checkpoint[];
  attempts: RunSummary[];
  environment_json: string;
  /** What was corrected since in the trainer, where that changes what such a trial gives. */
  before_mend: string[];
}
