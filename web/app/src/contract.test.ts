// SPDX-License-Identifier: Apache-2.0
// Answers as the server writes them (tests/views/json_test.cc has the same texts): that they have the types that are written from the
// contract is for the compiler to see.
import { expect, test } from "vitest";
import type { Cell, CellRun, CellStatistics, PlanRow, RunSeries, SweepSummary } from "./generated/ablate";

const kRun: CellRun = { run: 7, trial: 0, seed: "-3", value: "NaN", not_finite: 0, packed_with: 0 };
const kCell: Cell = {
  n: 0,
  of: 0,
  text: "",
  paper: "",
  paper_mark: "",
  paper_why: "",
  missing: "",
  diverged: [],
  runs: [],
  unfilled: 0,
  packed: 0,
  before_mend: 0,
  imported: 0,
  row: "",
  paper_difference: "",
  settled: 0,
};
const kStatistics: CellStatistics = {
  interval_kind: "t",
  why_no_interval: "",
  baseline: "a",
  compared: 3,
  baseline_compared: 2,
  unpaired: ["7"],
  difference_interval_kind: "",
  why_no_test: "",
  lines: [],
};
const kSeries: RunSeries = { run: 0, series: { name: "loss", steps: [], values: [], times_ms: ["5"] } };
const kSweep: SweepSummary = {
  name: "",
  tunes: "",
  state: "SWEEP_STATE_ACTIVE",
  trials: {
    total: 3,
    queued: 3,
    leased: 0,
    running: 0,
    completed: 0,
    failed: 0,
    cancelled: 0,
    held: 0,
    unfilled: 0,
  },
  rows: 0,
  seeds: 0,
  seeds_min: 0,
  priority: 0,
  owner: "",
  weight: 1,
  preempts: false,
  max_running: 0,
  breaker: true,
  canary: false,
  holds: [],
  gpu_hours: 0,
  spent: "",
  revision: 1,
  tags: [],
  pinned: false,
  archived: false,
  created: "2023-11-14T22:13:20Z",
};
const kRow: PlanRow = {
  id: "",
  label: "",
  set: {},
  counts: { "params.all": 5 },
  trials: 0,
  stored: 0,
  under_way: 0,
  config_hash: "",
  same_as: "",
  before_mend: 0,
  group: "",
  not_trained: "",
  not_trained_why: "",
  sources: [],
  time: { value: 60, low: 50, high: 75, from: "calibration", why: "" },
  memory_parts: { step: 5 },
};
// @ts-expect-error: 64-bit numbers are texts
const kWrongSeed: CellRun = { ...kRun, seed: -3 };
// @ts-expect-error: no state is called so
const kWrongState: SweepSummary = { ...kSweep, state: "ACTIVE" };

test("what is not finite has a number all the same, and what is unset is undefined", () => {
  expect(Number(kRun.value)).toBeNaN();
  expect([kCell.mean, kCell.comparison, kSweep.eta_seconds]).toEqual([undefined, undefined, undefined]);
  expect([kCell.p_corrected, kCell.statistics?.interval, kStatistics.g]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect(Number(kRow.counts["params.all"])).toBe(5);
  expect([kSeries.series.name, kSweep.trials.total]).toEqual(["loss", 3]);
  expect([kWrongSeed.seed, kWrongState.state]).toEqual([-3, "ACTIVE"]);
});
