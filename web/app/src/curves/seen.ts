// SPDX-License-Identifier: Apache-2.0
import { useMemo, useState } from "preact/hooks";
import type { Change } from "../live/stream";
import type { Resource } from "../resource";
import type { GroupRun, Points } from "../series";
import { kAxes, placesOf, scaleOf } from "./axis";
import {
  isExact,
  meansShown,
  notFiniteOf,
  pointsOf,
  pointsShown,
  widest,
  type Means,
  type Samples,
} from "./held";
import { curveOf, isPast, rangeToRead, useCurves, withDetails, type CurveSet } from "./read";
import type { CurveView } from "./view";

/** Curves of some runs as the view shows them. */
export interface Seen {
  resource: Resource<CurveSet>;
  /** Finer points of the zoomed range are being read. */
  refining: boolean;
  /** Runs without a place on the axis: how many, by reason. */
  undrawn: Map<string, number>;
}

/** Reads the metrics `names` (empty: all) of some runs, as a whole and finer where the view is zoomed to. */
export function useSeen(
  runs: number[],
  names: string[] | null,
  view: CurveView,
  concerns: (change: Change) => boolean,
): Seen {
  // the page's width, rounded, instead of the chart's: a resize by a few pixels reads nothing again
  const [width] = useState(() => Math.min(2000, Math.max(400, Math.ceil(innerWidth / 200) * 200)));
  const wanted =
    names !== null && runs.length > 0 ? { runs, names, times: kAxes[view.axis].timed, width } : null;
  const overview = useCurves(wanted, concerns);
  const range = useMemo(() => {
    if (!view.zoom) return undefined;
    const curves = [...(overview.data?.curves.values() ?? [])].flatMap((curve) => {
      const points = overview.data && placed(overview.data, curve.run, pointsShown(curve), view);
      return points ? [{ curve, x: points.x ?? points.steps, steps: points.steps }] : [];
    });
    return rangeToRead(curves, view.zoom);
  }, [overview.data, view.axis, view.zoom?.from, view.zoom?.to]);
  const detail = useCurves(range ? wanted : null, concerns, range, (run) =>
    range ? isPast(overview.data, run, range.to) : true,
  );
  const data = useMemo(
    () => withDetails(overview.data, range ? detail.data : undefined),
    [overview.data, detail.data, range === undefined],
  );
  const undrawn = useMemo(() => {
    const reasons = new Map<string, number>();
    for (const run of data?.runs.values() ?? []) {
      const scale = scaleOf(view.axis, run);
      if (typeof scale === "string") reasons.set(scale, (reasons.get(scale) ?? 0) + 1);
    }
    return reasons;
  }, [data, view.axis]);
  const error = overview.error ?? (range ? detail.error : undefined);
  return {
    resource: { ...(data ? { data } : {}), ...(error ? { error } : {}) },
    refining: range !== undefined && (detail.data === undefined || detail.data.missing > 0),
    undrawn,
  };
}

/** Samples where they lie on the view's axis; undefined where that is not known. */
function placed<S extends Samples>(
  set: CurveSet,
  run: number,
  samples: S,
  view: CurveView,
): (S & Points) | undefined {
  if (view.axis === "step") return samples;
  const known = set.runs.get(run);
  const scale = known && scaleOf(view.axis, known);
  if (scale === undefined || typeof scale === "string") return undefined;
  const x = placesOf(samples, scale);
  if (x.every((place, i) => i === 0 || place >= x[i - 1]!)) return { ...samples, x };
  // clocks were set back, or points came late
  const order = x.map((_, i) => i).sort((a, b) => x[a]! - x[b]!);
  const columns = Object.entries(samples).map(([name, column]: [string, unknown[]]) => [
    name,
    order.map((i) => column[i]),
  ]);
  return { ...(Object.fromEntries(columns) as S), x: order.map((i) => x[i]!) };
}

/** A metric of a run as a line takes it; undefined where it has none, or no place on the view's axis. */
export function groupRun(
  set: CurveSet,
  run: number,
  metric: string,
  name: string,
  view: CurveView,
): GroupRun | undefined {
  const held = curveOf(set, run, metric);
  const series = held && placed(set, run, pointsShown(held), view);
  if (!series) return undefined;
  const means: Means | undefined = isExact(held) ? undefined : placed(set, run, meansShown(held), view);
  return {
    name,
    series,
    ...(means ? { means } : {}),
    notFinite: notFiniteOf(held),
    points: pointsOf(held),
    bucketSteps: means ? widest([held]) : 0,
  };
}
