// SPDX-License-Identifier: Apache-2.0
import { ActionButton } from "../../../acting/button";
import { useCaller } from "../../../acting/caller";
import { stateWord } from "../../../components/state";
import type { RunDetail } from "../../../generated/ablate";
import { CancelTrialButton, retry } from "../../sweeps/[name]/actions";

/** Cancels or retries the trial of a run, in each sweep that has it. */
export function RunActions({ run, detail }: { run: number; detail: RunDetail }) {
  const caller = useCaller();
  const { state, rows } = detail.summary;
  const isNewest = detail.attempts.every((attempt) => attempt.id <= run); // an earlier attempt is over
  const under = ["leased", "running"].includes(stateWord(state));
  const failed = ["failed", "stopped"].includes(stateWord(state));
  if (!isNewest || !(under || failed) || !caller?.may.includes(under ? "CancelTrial" : "RetrySweep"))
    return null;
  const several = rows.length > 1;
  return (
    <div class="actions" role="group" aria-label={`Actions on the trial of run ${run}`}>
      {rows.map(({ sweep, row, seed }) =>
        under ? (
          <CancelTrialButton
            key={sweep + row}
            sweep={sweep}
            row={row}
            seed={seed}
            running
            label={several ? `Cancel in ${sweep}, row ${row}…` : "Cancel…"}
          />
        ) : (
          <ActionButton
            key={sweep + row}
            label={several ? `Retry in ${sweep}, row ${row}` : "Retry"}
            name={`Retry row ${row}, seed ${seed} of ${sweep}`}
            run={() => retry({ sweep, row, seed })}
          />
        ),
      )}
    </div>
  );
}
