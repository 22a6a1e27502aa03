// SPDX-License-Identifier: Apache-2.0
import { duration, moment } from "../format";
import type { SweepSummary } from "../generated/ablate";

/** When a sweep will be complete, or why that is unknown. */
export function ForecastText({ sweep }: { sweep: SweepSummary }) {
  const { forecast } = sweep;
  if (!forecast) return <span class="muted">–</span>;
  if (!forecast.complete) return <span class="muted forecast-why">{forecast.unknown || "unknown"}</span>;
  return (
    <span class="forecast">
      <time dateTime={forecast.complete}>{moment(forecast.complete)}</time>
      <span class="muted">in {duration(forecast.seconds)}</span>
    </span>
  );
}
