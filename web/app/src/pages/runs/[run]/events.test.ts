// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import type { Checkpoint, ProbeFound, RunSummary } from "../../../generated/ablate";
import { timeTicks } from "../../../time_axis";
import { eventsOf, stretchesOf, timeOfStep } from "./events";

const at = (second: number): string => new Date(1_700_000_000_000 + 1000 * second).toISOString();
const ms = (second: number): number => 1_700_000_000_000 + 1000 * second;
const attempt = (fields: Partial<RunSummary>): RunSummary =>
  ({
    id: 1,
    attempt: 1,
    state: "RUN_STATE_COMPLETED",
    worker: "w",
    reason: "",
    step: 100,
    ...fields,
  }) as RunSummary;
const checkpoint = (step: number): Checkpoint => ({ step }) as Checkpoint;

test("a step's time lies between those that are known", () => {
  const known = [
    { step: 0, ms: 0 },
    { step: 10, ms: 1000 },
    { step: 20, ms: 5000 },
  ];
  expect([0, 5, 15, 20, 30].map((step) => timeOfStep(step, known))).toEqual([0, 500, 3000, 5000, 5000]);
  expect(timeOfStep(1, [])).toBeUndefined();
});

test("attempts are in order; a checkpoint is where the points say, and one that nobody ended ends with the next", () => {
  const lost = attempt({ state: "RUN_STATE_LOST", leased: at(0), started: at(2), reason: "not heard" });
  const second = attempt({
    id: 2,
    attempt: 2,
    state: "RUN_STATE_RUNNING",
    leased: at(20),
    resumed_from_step: 50,
  });
  const probe = { name: "feature-norms", time: at(9) } as ProbeFound;
  const points = [
    { step: 50, ms: ms(10) },
    { step: 100, ms: ms(12) },
  ];
  const stretches = stretchesOf([second, lost], 1, [checkpoint(75), checkpoint(75)], [probe], points, ms(30));
  expect(stretches.map(({ run, end }) => [run.id, end])).toEqual([
    [1, ms(20)],
    [2, ms(30)],
  ]);
  expect(eventsOf(stretches).map((event) => [(event.ms - ms(0)) / 1000, event.run.id, event.text])).toEqual([
    [0, 1, "leased to w"],
    [2, 1, "started"],
    [9, 1, "probe feature-norms stored"],
    [11, 1, "checkpoint at step 75"],
    [20, 1, "lost at step 100: not heard"],
    [20, 2, "leased to w"],
  ]);
});

test("ticks of time are round, and no more than asked for", () => {
  for (const seconds of [5, 71, 600, 7200, 100_000, 3e6, 4e7]) {
    const ticks = timeTicks(ms(0), ms(seconds), 5);
    expect(ticks.length).toBeGreaterThan(0);
    expect(ticks.length).toBeLessThanOrEqual(6);
    for (const tick of ticks) expect(tick.ms).toBeGreaterThanOrEqual(ms(0));
  }
});
