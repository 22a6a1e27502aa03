// SPDX-License-Identifier: Apache-2.0
import { plural, whole } from "../../format";
import type { SubmitResponse } from "../../generated/ablate";

/** What became of a file that was submitted, as a sentence. */
export function submittedText({ sweep, created, new_trials, shared_trials }: SubmitResponse): string {
  if (!created) return `${sweep.name} is already stored with the same content.`;
  const shared = shared_trials > 0 ? `, ${whole(shared_trials)} shared with other sweeps` : "";
  return `Submitted ${sweep.name}: ${plural(new_trials, "new trial")}${shared}.`;
}
