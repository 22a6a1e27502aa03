// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import { ChartPanel } from "../../components/chart_panel";
import { plural, whole } from "../../format";
import type { ComparedCurves, ComparedMetric, CompareResponse } from "../../generated/ablate";
import { kBaselineLook, lookOf } from "../../palette";
import { Link, useAddress, withQuery } from "../../router";
import { plotOf, type Plot } from "../../series";

/** Drawn before anybody asks for all. */
const kFew = 4;
/** Points of a mean curve that are read. */
export const kMaxPoints = 300;

/** Mean curves of both sides, a chart for each metric that has them. */
export function Curves({ compared }: { compared: CompareResponse }) {
  const all = useAddress().searchParams.get("curves") === "all";
  const drawn = compared.metrics.filter((metric) => metric.curves && metric.curves.steps.length > 1);
  if (drawn.length === 0) return null;
  return (
    <section aria-labelledby="curves">
      <h2 id="curves">Mean curves</h2>
      <div class="panel run-charts">
        {drawn.slice(0, all ? undefined : kFew).map((metric) => (
          <div key={`${metric.take} ${metric.metric}`}>
            <MeanCurves title={metric.metric} metric={metric} />
          </div>
        ))}
      </div>
      {drawn.length > kFew && (
        <p>
          <Link href={withQuery({ curves: all ? null : "all" })}>
            {all ? "Show fewer" : `Show ${plural(drawn.length - kFew, "more metric")}`}
          </Link>
        </p>
      )}
    </section>
  );
}

/** The curves of a metric that has them, and where they cross. */
export function MeanCurves({ title, metric }: { title: string; metric: ComparedMetric }) {
  const plot = useMemo(() => plotOfBoth(metric.curves!), [metric]);
  return (
    <>
      <ChartPanel title={title} plot={plot} sync="compare" ownKey />
      <p class="chart-notes muted">{crossings(metric)}</p>
    </>
  );
}

function plotOfBoth(curves: ComparedCurves): Plot {
  const line = (id: "a" | "b") => ({
    id,
    label: id.toUpperCase(),
    look: id === "a" ? kBaselineLook : lookOf(1),
    runs: [{ name: id.toUpperCase(), series: { steps: curves.steps, values: curves[id] } }],
  });
  return plotOf([line("a"), line("b")]);
}

const kSaid = 3;

function crossings({ curves }: ComparedMetric): string {
  if (!curves) return "";
  const last = curves.crossings.slice(-kSaid);
  const before = curves.crossings_in_all - last.length;
  const where = last.map(
    ({ step, higher }) => `step ${whole(step)} (${higher.toUpperCase()} is higher after it)`,
  );
  const thinned = curves.thinned ? " Approximate: too many points to use all." : "";
  if (where.length === 0) return `The curves do not cross.${thinned}`;
  const earlier = before > 0 ? `, and ${plural(before, "time")} before` : "";
  return `The curves cross at ${where.join(", ")}${earlier}.${thinned}`;
}
