// SPDX-License-Identifier: Apache-2.0
import { duration, plain, tick, whole } from "../format";
import type { CurveRun } from "../generated/ablate";
import type { Samples } from "./held";

export type AxisKind = "step" | "epoch" | "images" | "wall" | "gpu";

interface AxisText {
  title: string;
  /** What its numbers are, for the name of a column. */
  unit: string;
  timed: boolean;
  at: (x: number) => string;
  tick: (x: number) => string;
}

/** "90 s", "1.5 h": a tick of a time axis. */
function timeTick(seconds: number): string {
  if (Math.abs(seconds) >= 172800) return `${tick(seconds / 86400)} d`;
  if (Math.abs(seconds) >= 7200) return `${tick(seconds / 3600)} h`;
  if (Math.abs(seconds) >= 180) return `${tick(seconds / 60)} min`;
  return seconds === 0 ? "0" : `${tick(seconds)} s`;
}

export const kAxes: Record<AxisKind, AxisText> = {
  step: { title: "Step", unit: "step", timed: false, at: (x) => `step ${whole(x)}`, tick },
  epoch: { title: "Epoch", unit: "epoch", timed: false, at: (x) => `epoch ${plain(x)}`, tick },
  images: { title: "Images seen", unit: "images", timed: false, at: (x) => `${whole(x)} images`, tick },
  wall: { title: "Wall time", unit: "seconds", timed: true, at: (x) => duration(x), tick: timeTick },
  gpu: {
    title: "GPU time",
    unit: "gpu_seconds",
    timed: true,
    at: (x) => `${duration(x)} of GPU`,
    tick: timeTick,
  },
};

/** Places a run's steps on an axis; or why that is impossible, as the end of a sentence. */
export function scaleOf(axis: AxisKind, run: CurveRun): ((step: number, time: number) => number) | string {
  const { attempts, gpus, images_per_step: images, steps_per_epoch: epoch } = run;
  const start = Number(attempts[0]?.started_ms);
  switch (axis) {
    case "step":
      return (step) => step;
    case "epoch":
      return epoch === undefined ? run.why_no_epochs : (step) => step / Number(epoch);
    case "images":
      return images === undefined ? run.why_no_images : (step) => step * images;
    case "wall":
      return Number.isFinite(start) ? (_, time) => (time - start) / 1000 : "start time unknown";
    case "gpu": {
      if (gpus === undefined) return run.why_no_gpu_time;
      const spans = attempts.map(({ started_ms, ended_ms }, i) => ({
        from: Number(started_ms),
        // one that was lost may have no end: the next one's begin bounds it
        to: Number(ended_ms ?? attempts[i + 1]?.started_ms ?? Infinity),
      }));
      return (_, time) =>
        (gpus / 1000) * spans.reduce((sum, { from, to }) => sum + Math.max(0, Math.min(time, to) - from), 0);
    }
  }
}

/** Why an axis has a place for none of the runs; undefined: it has one for some. */
export function whyNot(axis: AxisKind, runs: Iterable<CurveRun>): string | undefined {
  let why: string | undefined;
  for (const run of runs) {
    const scale = scaleOf(axis, run);
    if (typeof scale !== "string") return undefined;
    why ??= scale;
  }
  return why;
}

/** Where samples lie on an axis. */
export function placesOf(samples: Samples, scale: (step: number, time: number) => number): number[] {
  return samples.steps.map((step, i) => scale(step, samples.times[i] ?? NaN));
}
