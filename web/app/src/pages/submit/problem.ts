// SPDX-License-Identifier: Apache-2.0
import type { Problem } from "../../generated/ablate";

/** A problem's message, and the nearest name unless the message has it. */
export function messageOfProblem({ message, nearest }: Problem): string {
  return nearest && !message.includes(nearest) ? `${message}; did you mean '${nearest}'?` : message;
}
