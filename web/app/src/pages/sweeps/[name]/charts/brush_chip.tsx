// SPDX-License-Identifier: Apache-2.0
import { plural, whole } from "../../../../format";
import { Link, withQuery } from "../../../../router";
import { countKept, inWords, keptBy, unknownIn, type Brush } from "./brush";
import type { Frame } from "./frame";

/** What the brushes keep. */
export interface Brushed {
  /** Of each row of the frame: 1. */
  kept: Uint8Array;
  count: number;
  ids: ReadonlySet<string>;
  /** Axes that the table does not have. */
  unknown: string[];
}

/** Undefined: nothing is brushed, or not all rows were read yet. */
export function brushedBy(frame: Frame | undefined, brushes: readonly Brush[]): Brushed | undefined {
  if (!frame || brushes.length === 0) return undefined;
  const kept = keptBy(frame, brushes);
  const ids = new Set<string>();
  frame.rows.forEach(({ id }, i) => kept[i] && ids.add(id));
  return { kept, count: countKept(kept), ids, unknown: unknownIn(frame, brushes) };
}

interface Props {
  frame: Frame | undefined;
  brushes: readonly Brush[];
  brushed: Brushed | undefined;
  total: number;
}

/** "12 of 40 rows: brushed in Charts – clear" */
export function BrushChip({ frame, brushes, brushed, total }: Props) {
  if (brushes.length === 0) return null;
  return (
    <span class="chip brush-chip">
      <span title={inWords(frame, brushes)} role="status">
        {brushed ? `${whole(brushed.count)} of ${plural(total, "row")}` : "Reading all rows"}: brushed in
        Charts
        {brushed && brushed.unknown.length > 0 && `; unknown: ${brushed.unknown.join(", ")}`}
      </span>
      –
      <Link href={withQuery({ brush: [] })} aria-label="Clear the brush: show all rows">
        clear
      </Link>
    </span>
  );
}
