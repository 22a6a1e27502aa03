// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Change } from "./live/live";
import { Pause, runOnChange } from "./resource";

const { listeners } = vi.hoisted(() => ({ listeners: new Set<(change: Change) => void>() }));
vi.mock("./live/live", () => ({
  live: {
    state: { kind: "live", follows: true },
    ready: () => Promise.resolve(),
    onState: () => () => undefined,
    onChange: (listener: (change: Change) => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  },
}));

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Counts reads of sweep a. */
function reader(pause?: Pause) {
  const reads = { count: 0, stop: () => {} };
  reads.stop = runOnChange(
    ({ sweep }) => sweep === "a",
    () => Promise.resolve(++reads.count > 0),
    pause,
  );
  return reads;
}
const change = (sweep: string): void => listeners.forEach((listener) => listener({ sweep, run: 1 }));

test("a burst of changes is one read, a second after the one before", async () => {
  const reads = reader();
  await vi.advanceTimersByTimeAsync(0);
  expect(reads.count).toBe(1);
  for (let i = 0; i < 10; ++i) change("a");
  await vi.advanceTimersByTimeAsync(999);
  expect(reads.count).toBe(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(reads.count).toBe(2);
  change("b");
  await vi.advanceTimersByTimeAsync(5000);
  expect(reads.count).toBe(2);
  reads.stop();
});

test("a slow read waits longer, unless what is watched has changed", async () => {
  const pause = new Pause(15_000);
  const reads = reader(pause);
  for (let second = 0; second < 45; ++second) {
    await vi.advanceTimersByTimeAsync(1000);
    change("a");
  }
  expect(reads.count).toBe(3 + 1);
  pause.cut();
  await vi.advanceTimersByTimeAsync(1000);
  expect(reads.count).toBe(5);
  reads.stop();
});

test("what is watched may change while the slow read is under way", async () => {
  const pause = new Pause(15_000);
  const reads = reader(pause);
  pause.cut();
  change("a");
  await vi.advanceTimersByTimeAsync(1000);
  expect(reads.count).toBe(2);
  change("a");
  await vi.advanceTimersByTimeAsync(14_000);
  expect(reads.count).toBe(2);
  await vi.advanceTimersByTimeAsync(1000);
  expect(reads.count).toBe(3);
  reads.stop();
});
