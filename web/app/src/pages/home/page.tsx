// SPDX-License-Identifier: Apache-2.0
import { FailureGroups } from "../../components/failures";
import { ForecastText } from "../../components/forecast";
import { Loaded, Notice } from "../../components/notice";
import { countsText, filled, StepsBar, TrialsBar } from "../../components/progress";
import { ColumnHead, TablePanel } from "../../components/table_panel";
import { duration, moment, plural, rowName, whole } from "../../format";
import type {
  FailuresResponse,
  OverviewResponse,
  RunUnderWay,
  SweepSummary,
  WaitingReason,
} from "../../generated/ablate";
import type { Page } from "../../page";
import { useResource } from "../../resource";
import { failuresPath, Link, runPath, sweepPath } from "../../router";
import { useLooked } from "./looked";

export const page: Page = {
  title: "Home",
  nav: 0,
  View: HomePage,
};

function HomePage() {
  const overview = useResource<OverviewResponse>("/overview", () => true);
  return (
    <>
      <h1 tabIndex={-1}>Home</h1>
      <Loaded of={overview} what="The overview" lines={6}>
        {(data) => (
          <>
            <Slots overview={data} />
            {data.sweeps.length === 0 ? (
              <Idle />
            ) : (
              <Sweeps sweeps={data.sweeps} others={data.sweeps_left_out} />
            )}
            <Failures />
            {data.sweeps.length > 0 && (
              <>
                <Running runs={data.running} others={data.running_left_out} />
                <Waiting reasons={data.waiting} />
              </>
            )}
          </>
        )}
      </Loaded>
    </>
  );
}

function Idle() {
  return (
    <Notice kind="empty" title="Nothing is running or queued.">
      <p>
        <Link href="/sweeps">All sweeps</Link> lists what is stored. To start a new one:
      </p>
      <pre>ablate plan FILE.yaml{"\n"}ablate submit FILE.yaml</pre>
    </Notice>
  );
}

/** Slots, workers and the queue, in numbers. */
function Slots({ overview }: { overview: OverviewResponse }) {
  const slots = overview.slots.reduce((sum, kind) => sum + kind.slots, 0);
  const busy = overview.slots.reduce((sum, kind) => sum + kind.busy, 0);
  return (
    <ul class="tiles">
      <li class="panel">
        <span class="tile-name">Slots in use</span>
        <span class="tile-value num">
          {whole(busy)}
          <span class="muted"> of {whole(slots)}</span>
        </span>
        {overview.slots.map((kind) => (
          <span key={kind.name} class="tile-line" title={kind.name}>
            <span class="name">{kind.name}</span>
            <span class="num">
              {whole(kind.busy)}/{whole(kind.slots)}
            </span>
          </span>
        ))}
      </li>
      <li class="panel">
        <span class="tile-name">
          <Link href="/workers">Workers</Link>
        </span>
        <span class="tile-value num">
          {whole(overview.workers_connected)}
          <span class="muted"> of {whole(overview.workers)} connected</span>
        </span>
        {overview.notes.map(({ worker, note }) => (
          <span key={worker} class="tile-line warn" title={`${worker}: ${note}`}>
            <span class="name">
              {worker}: {note}
            </span>
          </span>
        ))}
      </li>
      <li class="panel">
        <span class="tile-name">
          <Link href="/queue">Queue</Link>
        </span>
        <span class="tile-value num">
          {overview.sweeps_left_out > 0 && "at least "}
          {whole(overview.sweeps.reduce((sum, sweep) => sum + sweep.trials.queued, 0))}
          <span class="muted"> waiting</span>
        </span>
        <span class="tile-line">
          <span>{plural(overview.sweeps.length + overview.sweeps_left_out, "active sweep")}</span>
        </span>
      </li>
    </ul>
  );
}

/** What failed since it was last marked as seen. */
function Failures() {
  const [since, look] = useLooked();
  const failures = useResource<FailuresResponse>(`/failures?since=${since}`, () => true, "failures");
  return (
    <section aria-labelledby="failures">
      <h2 id="failures">
        Failed since{" "}
        <time dateTime={new Date(since).toISOString()}>{moment(new Date(since).toISOString())}</time>
        {failures.data && failures.data.trials > 0 && (
          <button type="button" onClick={look}>
            Mark as seen
          </button>
        )}
      </h2>
      <Loaded of={failures} what="Failures" lines={2}>
        {({ groups, groups_left_out, more, trials }) =>
          groups.length === 0 ? (
            <p class="muted">Nothing.</p>
          ) : (
            <>
              <FailureGroups groups={groups} withSweep />
              {groups_left_out > 0 && <p class="muted">and {plural(groups_left_out, "more group")}</p>}
              {more && <p class="muted">Only the newest {whole(trials)} failures are shown.</p>}
            </>
          )
        }
      </Loaded>
    </section>
  );
}

function Sweeps({ sweeps, others }: { sweeps: SweepSummary[]; others: number }) {
  return (
    <section aria-labelledby="sweeps">
      <h2 id="sweeps">Active sweeps</h2>
      <TablePanel
        caption="Active sweeps, and when they will be complete"
        head={
          <>
            <ColumnHead>Sweep</ColumnHead>
            <ColumnHead>Table</ColumnHead>
            <ColumnHead num>Running</ColumnHead>
            <ColumnHead num>Waiting</ColumnHead>
            <ColumnHead>Complete</ColumnHead>
          </>
        }
      >
        {sweeps.map((sweep) => (
          <tr key={sweep.name}>
            <th scope="row">
              <Link class="strong" href={sweepPath(sweep.name)} title={sweep.name}>
                <span class="name">{sweep.name}</span>
              </Link>
            </th>
            <td title={countsText(sweep.trials)}>
              <span class="bar-with-text">
                <TrialsBar counts={sweep.trials} />
                <span class="num">
                  {whole(filled(sweep.trials))}/{whole(sweep.trials.total)}
                  {sweep.trials.failed + sweep.trials.held > 0 && (
                    <Link class="bad" href={failuresPath(sweep.name)}>
                      {" "}
                      {whole(sweep.trials.failed + sweep.trials.held)} failed or held
                    </Link>
                  )}
                </span>
              </span>
            </td>
            <td class="num">{whole(sweep.trials.running + sweep.trials.leased)}</td>
            <td class="num">{whole(sweep.trials.queued)}</td>
            <td>
              <ForecastText sweep={sweep} />
            </td>
          </tr>
        ))}
      </TablePanel>
      {others > 0 && (
        <p class="muted">
          and <Link href="/sweeps?q=state:active">{plural(others, "more active sweep")}</Link>
        </p>
      )}
    </section>
  );
}

function SweepLink({ name }: { name: string }) {
  return (
    <Link href={sweepPath(name)} title={name}>
      <span class="name">{name}</span>
    </Link>
  );
}

function Running({ runs, others }: { runs: RunUnderWay[]; others: number }) {
  return (
    <section aria-labelledby="running">
      <h2 id="running">Running</h2>
      {runs.length === 0 ? (
        <p class="muted">Nothing.</p>
      ) : (
        <TablePanel
          caption="Running runs, the least time left first"
          tall
          head={
            <>
              <ColumnHead>Run</ColumnHead>
              <ColumnHead>Sweep</ColumnHead>
              <ColumnHead>Row</ColumnHead>
              <ColumnHead num>Seed</ColumnHead>
              <ColumnHead>Progress</ColumnHead>
              <ColumnHead num>Time left</ColumnHead>
              <ColumnHead>Worker</ColumnHead>
            </>
          }
        >
          {runs.map((run) => (
            <tr key={run.run}>
              <th scope="row">
                <Link class="run" href={runPath(run.run)}>
                  run {run.run}
                </Link>
              </th>
              <td>{run.sweep ? <SweepLink name={run.sweep} /> : <span class="muted">none</span>}</td>
              <td>
                <span class="name" title={rowName(run.row, run.label)}>
                  {rowName(run.row, run.label)}
                </span>
              </td>
              <td class="num">{run.seed}</td>
              <td>
                {run.state === "RUN_STATE_LEASED" ? (
                  <span class="muted">starting</span>
                ) : (
                  <StepsBar step={run.step} total={run.total_steps} />
                )}
              </td>
              <td class="num">{duration(run.eta_seconds)}</td>
              <td>
                <span class="name" title={run.worker}>
                  {run.worker}
                </span>
              </td>
            </tr>
          ))}
        </TablePanel>
      )}
      {others > 0 && <p class="muted">and {plural(others, "more run")}</p>}
    </section>
  );
}

function Waiting({ reasons }: { reasons: WaitingReason[] }) {
  return (
    <section aria-labelledby="waiting">
      <h2 id="waiting">Waiting</h2>
      {reasons.length === 0 ? (
        <p class="muted">Nothing.</p>
      ) : (
        <TablePanel
          caption="Waiting trials by reason"
          head={
            <>
              <ColumnHead>Sweep</ColumnHead>
              <ColumnHead num>Trials</ColumnHead>
              <ColumnHead>Why</ColumnHead>
            </>
          }
        >
          {reasons.map((reason) => (
            <tr key={`${reason.sweep} ${reason.reason}`}>
              <th scope="row">
                <SweepLink name={reason.sweep} />
              </th>
              <td class="num">
                {reason.estimated && "about "}
                {whole(reason.trials)}
              </td>
              <td class="reason-text">{reason.reason || <span class="muted">not known yet</span>}</td>
            </tr>
          ))}
        </TablePanel>
      )}
    </section>
  );
}
