// SPDX-License-Identifier: Apache-2.0
import { Notice } from "../../../components/notice";
import { State } from "../../../components/state";
import { ColumnHead, TablePanel } from "../../../components/table_panel";
import { moment, plain, took, whole } from "../../../format";
import type { Checkpoint, MetricSummary, RunSummary } from "../../../generated/ablate";
import { Link, runPath } from "../../../router";

export function MetricTable({ metrics }: { metrics: MetricSummary[] }) {
  if (metrics.length === 0) return null;
  return (
    <TablePanel
      caption="Summary of each metric"
      head={
        <>
          <ColumnHead>Metric</ColumnHead>
          <ColumnHead num>Last</ColumnHead>
          <ColumnHead num>at step</ColumnHead>
          <ColumnHead num>Best</ColumnHead>
          <ColumnHead num>at step</ColumnHead>
          <ColumnHead num>Min</ColumnHead>
          <ColumnHead num>Mean</ColumnHead>
          <ColumnHead num>Max</ColumnHead>
          <ColumnHead num>Points</ColumnHead>
        </>
      }
    >
      {metrics.map((m) => (
        <tr key={m.name}>
          <th scope="row">{m.name}</th>
          <td class="num">{plain(m.last)}</td>
          <td class="num muted">{whole(m.last_step)}</td>
          <td class="num">{plain(m.best)}</td>
          <td class="num muted">{whole(m.best_step)}</td>
          <td class="num">{plain(m.min)}</td>
          <td class="num">{plain(m.mean)}</td>
          <td class="num">{plain(m.max)}</td>
          <td class="num muted">
            {whole(m.count)}
            {m.finite < m.count && (
              <strong class="bad" title="Best, min, mean and max are of the finite points">
                , {whole(m.count - m.finite)} not finite
              </strong>
            )}
          </td>
        </tr>
      ))}
    </TablePanel>
  );
}

export function Checkpoints({ checkpoints }: { checkpoints: Checkpoint[] }) {
  if (checkpoints.length === 0) return <Notice kind="empty" title="This run has written no checkpoint." />;
  return (
    <TablePanel
      caption="Checkpoints"
      head={
        <>
          <ColumnHead num>Step</ColumnHead>
          <ColumnHead>Host</ColumnHead>
          <ColumnHead>Path</ColumnHead>
          <ColumnHead>SHA-256</ColumnHead>
        </>
      }
    >
      {checkpoints.map((checkpoint) => (
        <tr key={`${checkpoint.run} ${checkpoint.step} ${checkpoint.path}`}>
          <th scope="row" class="num">
            {whole(checkpoint.step)}
          </th>
          <td>{checkpoint.host}</td>
          <td>
            <code class="path">{checkpoint.path}</code>
          </td>
          <td>
            <code title={checkpoint.sha256}>{checkpoint.sha256.slice(0, 12)}</code>
          </td>
        </tr>
      ))}
    </TablePanel>
  );
}

export function Attempts({ attempts, current }: { attempts: RunSummary[]; current: number }) {
  return (
    <TablePanel
      caption="Every attempt at this trial"
      head={
        <>
          <ColumnHead num>Attempt</ColumnHead>
          <ColumnHead>Run</ColumnHead>
          <ColumnHead>State</ColumnHead>
          <ColumnHead>Worker</ColumnHead>
          <ColumnHead num>Steps</ColumnHead>
          <ColumnHead num>Started</ColumnHead>
          <ColumnHead num>Took</ColumnHead>
        </>
      }
    >
      {attempts.map((attempt) => (
        <tr key={attempt.id} class={attempt.id === current ? "selected" : ""}>
          <th scope="row" class="num">
            {attempt.attempt}
          </th>
          <td>
            {attempt.id === current ? (
              `run ${attempt.id}, this one`
            ) : (
              <Link href={runPath(attempt.id)}>run {attempt.id}</Link>
            )}
          </td>
          <td>
            <State state={attempt.state} />
            {attempt.reason && <div class="why">{attempt.reason}</div>}
          </td>
          <td>{attempt.worker}</td>
          <td class="num">
            {attempt.resumed_from_step !== undefined && (
              <span class="muted">{whole(attempt.resumed_from_step)} → </span>
            )}
            {whole(attempt.step)}
          </td>
          <td class="num">
            {attempt.started ? <time dateTime={attempt.started}>{moment(attempt.started)}</time> : "–"}
          </td>
          <td class="num">{attempt.ended ? took(attempt) : "–"}</td>
        </tr>
      ))}
    </TablePanel>
  );
}
