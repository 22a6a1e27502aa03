// SPDX-License-Identifier: Apache-2.0
// What the design page shows its components with.
import type { CurveRun, FailureGroup, Forecast, SweepSummary, TrialCounts } from "../../generated/ablate";
import { lookOf, kBaselineLook } from "../../palette";
import { plotOf, type Plot, type Points } from "../../series";

export const counts = (of: Partial<TrialCounts>): TrialCounts => ({
  ...{
    total: 14,
    queued: 0,
    leased: 0,
    running: 0,
    completed: 0,
    failed: 0,
    cancelled: 0,
    held: 0,
    unfilled: 0,
  },
  ...of,
});

/** Every state of each kind. */
export const kStates = {
  sweeps: ["active", "paused", "completed", "incomplete", "failed", "held", "cancelled"],
  "trials and runs": [
    "queued",
    "leased",
    "running",
    "completed",
    "failed",
    "held",
    "stopped",
    "lost",
    "cancelled",
  ],
};

export const kCounts: [string, TrialCounts][] = [
  ["nothing yet", counts({ queued: 14 })],
  ["running", counts({ completed: 6, running: 3, queued: 5 })],
  [
    "all kinds",
    counts({ completed: 5, unfilled: 2, running: 2, failed: 2, held: 2, cancelled: 1, queued: 2 }),
  ],
  ["completed", counts({ completed: 14 })],
];

const sweepWith = (forecast?: Partial<Forecast>): SweepSummary =>
  ({ ...(forecast ? { forecast } : {}) }) as SweepSummary;
export const kForecasts: [string, SweepSummary][] = [
  ["none", sweepWith()],
  ["known", sweepWith({ complete: new Date(Date.now() + 5400_000).toISOString(), seconds: 5400 })],
  ["unknown", sweepWith({ unknown: "no row has run yet" })],
];

export const kFailures: FailureGroup[] = [
  {
    failure: "FAILURE_CLASS_RESOURCES",
    state: "TRIAL_STATE_FAILED",
    line: "CUDA out of memory: tried to allocate 2.50 GiB",
    trials: 9,
    newest: new Date().toISOString(),
    examples: Array.from({ length: 7 }, (_, i) => ({
      ...{
        trial: i + 1,
        run: i,
        sweep: "msf-sharing",
        row: "f",
        label: "QKKKQ",
        seed: String(i),
        worker: "w1",
      },
    })),
    common: ["groups=8", "batch_size=512"],
  },
  {
    failure: "FAILURE_CLASS_UNSPECIFIED",
    state: "TRIAL_STATE_HELD",
    line: "",
    trials: 1,
    examples: [],
    common: [],
  },
];

/** A curve that falls and jitters, the same each time; `broken`: with points that are not finite. */
function points(seed: number, broken = false): Points {
  const steps = Array.from({ length: 60 }, (_, i) => i * 10);
  const values = steps.map((step, i) =>
    broken && i > 30 && i < 36
      ? "NaN"
      : 2.2 * Math.exp(-step / 260) + 0.08 * Math.sin(i * 1.7 + seed) + seed / 12,
  );
  return { steps, values };
}
const run = (name: string, seed: number, broken = false) => ({ name, series: points(seed, broken) });

export const kPlots: [string, Plot][] = [
  ["train/loss, no points", plotOf([])],
  ["train/loss, one run", plotOf([{ id: "a", label: "seed 0", look: lookOf(0), runs: [run("seed 0", 0)] }])],
  [
    "train/loss, means with a band",
    plotOf([
      { id: "orig", label: "orig", look: kBaselineLook, runs: [0, 1, 2].map((i) => run(`seed ${i}`, i)) },
      { id: "msf", label: "msf", look: lookOf(1), runs: [4, 5].map((i) => run(`seed ${i}`, i)), of: 3 },
    ]),
  ],
  [
    "train/loss, smoothed, not finite in between",
    plotOf([{ id: "a", label: "seed 0", look: lookOf(3), runs: [run("seed 0", 1, true)] }], {
      smoothing: { kind: "ema", factor: 0.8 },
    }),
  ],
];

export const kNoRuns: CurveRun[] = [];
