// SPDX-License-Identifier: Apache-2.0
import type { Seen } from "../curves/seen";
import { plural } from "../format";

/** What is still loading, and how many runs have no place on the axis. */
export function CurveState({ seen: { resource, refining, undrawn } }: { seen: Seen }) {
  const missing = resource.data?.missing ?? 0;
  return (
    <>
      <p class="curve-state muted" role="status">
        {missing > 0 && `Loading ${plural(missing, "more run")} … `}
        {missing === 0 && refining && "Loading every point of this range …"}
      </p>
      {[...undrawn].map(([why, count]) => (
        <p key={why} class="curve-state muted">
          {plural(count, "run")} not drawn on this axis: {why}.
        </p>
      ))}
    </>
  );
}
