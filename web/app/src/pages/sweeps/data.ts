// SPDX-License-Identifier: Apache-2.0
// What GET /sweeps answers: ablate.v1.ListSweepsResponse.

export interface TrialCounts {
  total: number;
  queued: number;
  leased: number;
  running: number;
  completed: number;
  /** Of the completed: they did not report a metric that a column takes. */
  unfilled: number;
  failed: number;
  held: number;
  cancelled: number;
}

export interface SweepSummary {
  name: string;
  state: string;
  trials: TrialCounts;
  rows: number;
  seeds: number;
  priority: number;
  created?: string;
  finished?: string;
  eta_seconds?: number;
}

export interface Sweeps {
  sweeps: SweepSummary[];
  /** How many this answer has not: it is a part of the list. */
  left_out: number;
}
