// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";

/** SWEEP_STATE_ACTIVE, TRIAL_STATE_QUEUED, RUN_STATE_LOST, … as the word that is shown. */
export function stateWord(state: string): string {
  const known = words.get(state);
  if (known !== undefined) return known;
  const word = state.replace(/^(SWEEP|TRIAL|RUN)_STATE_/, "").toLowerCase();
  words.set(state, word);
  return word;
}
/** A page asks for thousands of a dozen. */
const words = new Map<string, string>();

const kRing = <circle cx="6" cy="6" r="4.5" />;
const kIcons: Record<string, ComponentChildren> = {
  active: <path d="M4 2.5v7l5.5-3.5z" fill="currentColor" />,
  running: <path d="M4 2.5v7l5.5-3.5z" fill="currentColor" />,
  queued: (
    <>
      {kRing}
      <path d="M6 3.5V6l1.8 1.2" />
    </>
  ),
  leased: <circle cx="6" cy="6" r="4.5" stroke-dasharray="2 2" />,
  paused: <path d="M4 2.5v7M8 2.5v7" stroke-width="2" />,
  completed: <path d="M2 6.5 4.8 9.2 10 3.2" stroke-width="1.8" />,
  incomplete: <path d="M2 6.5 4.8 9.2 10 3.2" stroke-width="1.8" stroke-dasharray="2.4 1.6" />,
  failed: <path d="m3 3 6 6M9 3 3 9" stroke-width="1.8" />,
  held: <path d="M3.2 6.5v-2m1.9 1.5V3m1.9 3V3m1.9 3.5V4.5v3.2a2.6 2.6 0 0 1-5.7.6" />,
  cancelled: (
    <>
      {kRing}
      <path d="m3 9 6-6" />
    </>
  ),
  stopped: <path d="M3 3h6v6H3z" fill="currentColor" />,
  lost: <path d="M4 4.2a2 2 0 1 1 2.6 2L6 7v.6M6 9.6v.1" stroke-width="1.6" />,
};

/** The icon of a state in its colour, for where its word stands beside it or in a label. */
export function StateIcon({ state }: { state: string }) {
  return (
    <svg
      class={`state-${stateWord(state)}`}
      viewBox="0 0 12 12"
      width="12"
      height="12"
      fill="none"
      stroke="currentColor"
      stroke-width="1.3"
      aria-hidden="true"
    >
      {kIcons[stateWord(state)] ?? kRing}
    </svg>
  );
}

/** A state as icon and word, never as colour alone. */
export function State({ state }: { state: string }) {
  const word = stateWord(state);
  return (
    <span class={`state state-${word}`}>
      <StateIcon state={state} />
      {word}
    </span>
  );
}
