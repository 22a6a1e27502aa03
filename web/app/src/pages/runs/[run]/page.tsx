// SPDX-License-Identifier: Apache-2.0
import { Loaded } from "../../../components/notice";
import { Folded } from "../../../folded/folded";
import { rowName } from "../../../format";
import type { RunDetail } from "../../../generated/ablate";
import type { Page } from "../../../page";
import { canBeProbed } from "../../../probes/found";
import { useProbes } from "../../../probes/read";
import { useResource } from "../../../resource";
import { comparePath, Link, rowPath, sweepPath } from "../../../router";
import { RunActions } from "./actions";
import { RunCurves } from "./curves";
import { Probes } from "./probes";
import { Resources } from "./resources";
import { Attempts, Checkpoints, MetricTable } from "./tables";
import { Json } from "./json";
import { Log } from "./log";
import { Summary } from "./summary";
import { TimeLine } from "./time_line";

export const page: Page = {
  title: (run) => `Run ${run}`,
  under: "/sweeps",
  accepts: (run) => /^[1-9]\d*$/.test(run),
  example: "/runs/17, with the run's number",
  View: ({ id }) => <RunPage run={Number(id)} />,
};

function RunPage({ run }: { run: number }) {
  // a change of the sweep as a whole may be one of this run too
  const detail = useResource<RunDetail>(`/runs/${run}`, (change) => change.run === run || change.run === 0);
  const place = detail.data?.summary.rows[0];
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <Link href="/sweeps">Sweeps</Link>
        {detail.data?.summary.rows.map((row) => (
          <span key={row.sweep + row.row}>
            <Link href={sweepPath(row.sweep)}>{row.sweep}</Link>
            <Link href={rowPath(row.sweep, row.row)}>{rowName(row.row, row.label)}</Link>
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
      <p class="page-links">
        <Link href={comparePath(String(run))}>Compare with another run</Link>
      </p>
      <Loaded of={detail} what={`Run ${run}`}>
        {(data) => <Body run={run} detail={data} />}
      </Loaded>
    </>
  );
}

function Body({ run, detail }: { run: number; detail: RunDetail }) {
  const probes = useProbes(run, detail.summary.state);
  return (
    <>
      <Summary detail={detail} />
      <RunActions run={run} detail={detail} />
      <section aria-labelledby="curves">
        <h2 id="curves">Curves</h2>
        <RunCurves run={run} />
        <MetricTable metrics={detail.summary.metrics} />
      </section>
      <Resources run={run} state={detail.summary.state} />
      <Probes
        run={run}
        of={probes}
        ready={Boolean(detail.summary.ended) && canBeProbed(detail.config_json)}
      />
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
      <TimeLine run={run} detail={detail} probes={probes} />
      <section aria-labelledby="checkpoints">
        <h2 id="checkpoints">Checkpoints</h2>
        <Checkpoints checkpoints={detail.checkpoints} />
      </section>
      <section aria-labelledby="attempts">
        <h2 id="attempts">Attempts</h2>
        <Attempts attempts={detail.attempts} current={run} />
      </section>
      <Folded title="Train it again">{({ TrainAgain }) => <TrainAgain detail={detail} />}</Folded>
      <Folded title="Provenance">{({ RunProvenance }) => <RunProvenance detail={detail} />}</Folded>
    </>
  );
}
