// SPDX-License-Identifier: Apache-2.0
import { stateWord } from "../../../components/state";
import { whole } from "../../../format";
import type { Checkpoint, ProbeFound, RunSummary } from "../../../generated/ablate";

/** One attempt at a trial, in milliseconds since the epoch. */
export interface Stretch {
  run: RunSummary;
  leased: number;
  started: number | undefined;
  /** Of one that is under way: now. Of one whose end nobody told: where the next began. */
  end: number;
  isOver: boolean;
  marks: Mark[];
}
export interface Mark {
  kind: "checkpoint" | "probe";
  ms: number;
  text: string;
}
export interface Event {
  ms: number;
  run: RunSummary;
  text: string;
  /** Its time was not told: it is that of the nearest points. */
  about?: boolean;
}

/** When a run was at a step. */
export interface StepTime {
  step: number;
  ms: number;
}

/** Between the moments that are known, by the steps; before the first and after the last, that one's. */
export function timeOfStep(step: number, known: StepTime[]): number | undefined {
  const after = known.findIndex((each) => each.step >= step);
  if (after < 0) return known.at(-1)?.ms;
  const [b, a] = [known[after]!, known[after - 1]];
  if (!a || b.step === a.step) return b.ms;
  return a.ms + ((b.ms - a.ms) * (step - a.step)) / (b.step - a.step);
}

/** The attempts in their order, with the checkpoints of `current` and what probes found in it. */
export function stretchesOf(
  attempts: RunSummary[],
  current: number,
  checkpoints: Checkpoint[],
  probes: ProbeFound[],
  points: StepTime[],
  now: number,
): Stretch[] {
  const ordered = [...attempts].sort((a, b) => a.attempt - b.attempt);
  return ordered.map((run, i) => {
    const leased = Date.parse(run.leased);
    const started = run.started ? Date.parse(run.started) : undefined;
    const isOver = !["leased", "running"].includes(stateWord(run.state));
    const next = ordered[i + 1];
    const end = run.ended ? Date.parse(run.ended) : isOver ? Date.parse(next?.leased ?? run.leased) : now;
    const stretch = { run, leased, started, end: Math.max(leased, started ?? leased, end), isOver };
    return { ...stretch, marks: run.id === current ? marksOf(stretch, checkpoints, probes, points) : [] };
  });
}

function marksOf(
  { run, leased, started, end }: Omit<Stretch, "marks">,
  checkpoints: Checkpoint[],
  probes: ProbeFound[],
  points: StepTime[],
): Mark[] {
  const begin = started ?? leased;
  const known = [
    { step: run.resumed_from_step ?? 0, ms: begin },
    ...points.filter(({ step, ms }) => step > (run.resumed_from_step ?? 0) && ms >= begin && ms <= end),
    { step: run.step, ms: end },
  ].sort((a, b) => a.step - b.step);
  const steps = [...new Set(checkpoints.map(({ step }) => step))].sort((a, b) => a - b);
  return [
    ...steps.map((step) => ({
      kind: "checkpoint" as const,
      ms: Math.min(end, Math.max(begin, timeOfStep(step, known) ?? end)),
      text: `checkpoint at step ${whole(step)}`,
    })),
    ...probes.flatMap(({ name, time }) =>
      time ? [{ kind: "probe" as const, ms: Date.parse(time), text: `probe ${name} stored` }] : [],
    ),
  ];
}

/** All that happened, the earliest first. */
export function eventsOf(stretches: Stretch[]): Event[] {
  return stretches
    .flatMap(({ run, leased, started, end, isOver, marks }): Event[] => [
      { ms: leased, run, text: `leased to ${run.worker}` },
      ...(started === undefined
        ? []
        : [
            {
              ms: started,
              run,
              text:
                run.resumed_from_step === undefined
                  ? "started"
                  : `resumed from step ${whole(run.resumed_from_step)}`,
            },
          ]),
      ...marks.map(({ kind, ms, text }) => ({ ms, run, text, about: kind === "checkpoint" })),
      ...(isOver
        ? [
            {
              ms: end,
              run,
              text: `${stateWord(run.state)} at step ${whole(run.step)}${run.reason ? `: ${run.reason}` : ""}`,
              about: !run.ended,
            },
          ]
        : []),
    ])
    .sort((a, b) => a.ms - b.ms);
}
