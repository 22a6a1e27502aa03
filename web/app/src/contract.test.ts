// SPDX-License-Identifier: Apache-2.0
// Answers as the server writes them (tests/views/json_test.cc has the same texts): that they have the types that are written from the
// contract is for the compiler to see.
import { expect, test } from "vitest";
import type { Cell, CellRun, PlanRow, RunSeries, SweepSummary } from "./generated/ablate";

const kRun: CellRun = { run: 7, trial: 0, seed: "-3", value: "NaN", not_finite: 0 };
const kCell: Cell = {
  n: 0,
  of: 0,
  text: "",
  paper: "",
  missing: "",
  runs: [],
  unfilled: 0,
  before_mend: 0,
};
const kSeries: RunSeries = { run: 0 };
const kSweep: SweepSummary = {
  name: "",
  state: "SWEEP_STATE_ACTIVE",
  rows: 0,
  seeds: 0,
  priority: 0,
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
};
// @ts-expect-error: 64-bit numbers are texts
const kWrongSeed: CellRun = { ...kRun, seed: -3 };
// @ts-expect-error: no state is called so
const kWrongState: SweepSummary = { ...kSweep, state: "ACTIVE" };

test("what is not finite has a number all the same, and what is unset is undefined", () => {
  expect(Number(kRun.value)).toBeNaN();
  expect([kCell.mean, kSeries.series, kSweep.eta_seconds]).toEqual([undefined, undefined, undefined]);
  expect(Number(kRow.counts["params.all"])).toBe(5);
  expect([kWrongSeed.seed, kWrongState.state]).toEqual([-3, "ACTIVE"]);
});
