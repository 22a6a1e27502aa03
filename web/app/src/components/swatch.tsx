// SPDX-License-Identifier: Apache-2.0
import type { Look } from "../palette";

/** A line as the chart draws it: hue and dashes. */
export function Swatch({ look }: { look: Look }) {
  return (
    <svg class="swatch" viewBox="0 0 26 8" width="26" height="8" aria-hidden="true">
      <path
        d="M0 4h26"
        fill="none"
        stroke={`var(${look.color})`}
        stroke-width={look.strong ? 2.6 : 2}
        stroke-dasharray={look.dash.join(" ")}
      />
    </svg>
  );
}
