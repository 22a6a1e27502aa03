// SPDX-License-Identifier: Apache-2.0
import { plural, whole } from "../format";
import type { TrialCounts } from "../generated/ablate";

/** Trials that are completed with a value for every column. */
export const filled = (counts: TrialCounts): number => counts.completed - counts.unfilled;

/** Trials by state as one bar; the numbers stand in its label and, where shown, beside it. */
export function TrialsBar({ counts }: { counts: TrialCounts }) {
  const parts = [
    ["completed", filled(counts)],
    ["unfilled", counts.unfilled],
    ["running", counts.running + counts.leased],
    ["failed", counts.failed],
    ["held", counts.held],
    ["cancelled", counts.cancelled],
  ] as const;
  return (
    <span class="trials-bar" role="img" aria-label={countsText(counts)}>
      {parts.map(
        ([name, count]) =>
          count > 0 && (
            <span key={name} class={`part-${name}`} style={{ width: `${(100 * count) / counts.total}%` }} />
          ),
      )}
    </span>
  );
}

export function countsText(counts: TrialCounts): string {
  const parts = [
    `${whole(filled(counts))} of ${plural(counts.total, "trial")} completed`,
    counts.unfilled > 0 ? `${whole(counts.unfilled)} completed without a metric of the table` : "",
    counts.running + counts.leased > 0 ? `${whole(counts.running + counts.leased)} running` : "",
    counts.queued > 0 ? `${whole(counts.queued)} queued` : "",
    counts.failed > 0 ? `${whole(counts.failed)} failed` : "",
    counts.held > 0 ? `${whole(counts.held)} held` : "",
    counts.cancelled > 0 ? `${whole(counts.cancelled)} cancelled` : "",
  ];
  return parts.filter(Boolean).join(", ");
}

/** Steps done of steps to do. */
export function StepsBar({ step, total }: { step: number; total: number }) {
  if (total === 0) return <span class="muted">–</span>;
  const percent = Math.min(100, (100 * step) / total);
  return (
    <span class={percent === 100 ? "steps steps-done" : "steps"}>
      <span class="steps-bar" aria-hidden="true">
        <span style={{ width: `${percent}%` }} />
      </span>
      <span class="num">{Math.floor(percent)} %</span>
    </span>
  );
}
