// SPDX-License-Identifier: Apache-2.0
import { keep, kept } from "../../kept";

/** What was written and not submitted: each address of the editor (`?extend=NAME`, …) has its own. `of`: the address's query. */
const nameOf = (of: string): string => `ablate:draft${of && `?${of}`}`;

/** This tab's own, or what any tab wrote last: a tab that is closed leaves it. */
export function draftOf(of: string): string | null {
  return kept("sessionStorage", nameOf(of)) ?? kept("localStorage", nameOf(of));
}

/** null: there is none any more. */
export function keepDraft(of: string, text: string | null): void {
  keep("sessionStorage", nameOf(of), text);
  keep("localStorage", nameOf(of), text);
}
