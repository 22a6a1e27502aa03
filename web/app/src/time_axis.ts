// SPDX-License-Identifier: Apache-2.0

const [kMinute, kHour, kDay] = [60, 3600, 86_400];
/** Seconds between two ticks. */
const kSteps = [
  ...[1, 2, 5, 10, 15, 30, kMinute, 2 * kMinute, 5 * kMinute, 10 * kMinute, 15 * kMinute, 30 * kMinute],
  ...[kHour, 2 * kHour, 3 * kHour, 6 * kHour, 12 * kHour, kDay, 2 * kDay, 7 * kDay, 14 * kDay, 28 * kDay],
  ...[56 * kDay, 112 * kDay, 365 * kDay],
];

export interface TimeTick {
  ms: number;
  text: string;
}

/** Round local times between two moments, `most` of them at most unless they are years apart. */
export function timeTicks(fromMs: number, toMs: number, most: number): TimeTick[] {
  const span = (toMs - fromMs) / 1000;
  const step = kSteps.find((seconds) => span / seconds <= most) ?? kSteps.at(-1)!;
  const offset = new Date(fromMs).getTimezoneOffset() * kMinute * 1000;
  const first = Math.ceil((fromMs - offset) / (step * 1000));
  const ticks: TimeTick[] = [];
  for (let i = first; i * step * 1000 + offset <= toMs; ++i) {
    const ms = i * step * 1000 + offset;
    ticks.push({ ms, text: tickText(new Date(ms), step) });
  }
  return ticks;
}

/** Of a midnight the day. */
function tickText(time: Date, step: number): string {
  const isMidnight = time.getHours() + time.getMinutes() + time.getSeconds() === 0;
  if (step >= kDay || isMidnight)
    return time.toLocaleDateString(undefined, { day: "numeric", month: "short" });
  return time.toLocaleTimeString(undefined, {
    hour: "2-digit",
    minute: "2-digit",
    ...(step < kMinute ? { second: "2-digit" } : {}),
  });
}

/** A moment to the second, with its day. */
export function exactMoment(ms: number): string {
  const time = new Date(ms);
  return time.toLocaleString(undefined, {
    day: "numeric",
    month: "short",
    ...(time.getFullYear() === new Date().getFullYear() ? {} : { year: "numeric" }),
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
  });
}
