// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import { ChartPanel } from "../../../components/chart_panel";
import { Loaded, Notice } from "../../../components/notice";
import { rowName } from "../../../format";
import type { GetMetricsResponse, RunDetail } from "../../../generated/ablate";
import type { Page } from "../../../page";
import { lookOf } from "../../../palette";
import { useResource } from "../../../resource";
import { Link, sweepPath } from "../../../router";
import { plotOf, quantitiesOf } from "../../../series";
import { Attempts, Checkpoints, MetricTable } from "./tables";
import { Json } from "./json";
import { Log } from "./log";
import { Summary } from "./summary";

export const page: Page = {
  title: (run) => `Run ${run}`,
  under: "/sweeps",
  accepts: (run) => /^[1-9]\d*$/.test(run),
  View: ({ id }) => <RunPage run={Number(id)} />,
};

function RunPage({ run }: { run: number }) {
  // a change of the sweep as a whole may be one of this run too
  const detail = useResource<RunDetail>(`/runs/${run}`, (change) => change.run === run || change.run === 0);
  const place = detail.data?.summary.rows[0];
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <Link href="/">Sweeps</Link>
        {detail.data?.summary.rows.map((row) => (
          <span key={row.sweep + row.row}>
            <Link href={sweepPath(row.sweep)}>{row.sweep}</Link>
            <Link href={`${sweepPath(row.sweep)}?row=${encodeURIComponent(row.row)}`}>
              {rowName(row.row, row.label)}
            </Link>
          </span>
        ))}
      </nav>
      <h1 tabIndex={-1}>
        Run {run}
        {place && (
          <span class="h1-aside">
            {rowName(place.row, place.label)}, seed {place.seed}
          </span>
        )}
      </h1>
      <Loaded of={detail} what={`Run ${run}`}>
        {(data) => <Body run={run} detail={data} />}
      </Loaded>
    </>
  );
}

function Body({ run, detail }: { run: number; detail: RunDetail }) {
  return (
    <>
      <Summary detail={detail} />
      <section aria-labelledby="curves">
        <h2 id="curves">Curves</h2>
        <RunCurves run={run} />
        <MetricTable metrics={detail.summary.metrics} />
      </section>
      <section aria-labelledby="log">
        <h2 id="log">Log</h2>
        <Log run={run} bytes={Number(detail.log_bytes)} ended={Boolean(detail.summary.ended)} />
      </section>
      <div class="columns">
        <section aria-labelledby="config">
          <h2 id="config">Configuration</h2>
          <Json text={detail.config_json} label="Configuration" />
        </section>
        <section aria-labelledby="environment">
          <h2 id="environment">Environment</h2>
          <Json text={detail.environment_json} label="Environment" />
        </section>
      </div>
      <section aria-labelledby="checkpoints">
        <h2 id="checkpoints">Checkpoints</h2>
        <Checkpoints checkpoints={detail.checkpoints} />
      </section>
      <section aria-labelledby="attempts">
        <h2 id="attempts">Attempts</h2>
        <Attempts attempts={detail.attempts} current={run} />
      </section>
    </>
  );
}

const kMaxPoints = 600;

/** One chart for each quantity, training and validation in it, all with one cursor. */
function RunCurves({ run }: { run: number }) {
  const metrics = useResource<GetMetricsResponse>(
    `/metrics?run=${run}&max_points=${kMaxPoints}`,
    (change) => change.run === run || change.run === 0,
  );
  const charts = useMemo(() => {
    const series = new Map((metrics.data?.series ?? []).map(({ series }) => [series.name, series]));
    return [...quantitiesOf(series.keys())].map(([quantity, names]) => ({
      quantity,
      plot: plotOf(
        names.map((name, i) => ({
          id: name,
          label: name,
          look: lookOf(i),
          runs: [{ name, series: series.get(name)! }],
        })),
      ),
    }));
  }, [metrics.data]);
  return (
    <Loaded of={metrics} what="The curves" lines={6}>
      {() =>
        charts.length === 0 ? (
          <Notice kind="empty" title="No points yet." />
        ) : (
          <div class="panel run-charts">
            {charts.map(({ quantity, plot }) => (
              <ChartPanel key={quantity} title={quantity} plot={plot} sync={`run ${run}`} ownKey />
            ))}
          </div>
        )
      }
    </Loaded>
  );
}
