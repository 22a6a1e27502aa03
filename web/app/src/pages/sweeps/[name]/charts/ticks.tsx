// SPDX-License-Identifier: Apache-2.0
import { tick } from "../../../../format";
import type { Scale } from "./scales";

/** A part of a width, as SVG and CSS take it. */
export const percent = (share: number): string => `${(share * 100).toFixed(3)}%`;

/** The numbers above the bars of a column, which is of this title. */
export function Ticks({ scale, title }: { scale: Scale; title: string }) {
  return (
    <>
      <span class="sr-only">{title}</span>
      <svg width="100%" height="18" aria-hidden="true" class="bars-ticks">
        {scale.ticks.map((value) => (
          <text key={value} x={percent(scale.at(value))} y="13" text-anchor="middle">
            {tick(value)}
          </text>
        ))}
      </svg>
    </>
  );
}
