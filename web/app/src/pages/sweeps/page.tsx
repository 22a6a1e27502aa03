// SPDX-License-Identifier: Apache-2.0
import { Loaded, Notice } from "../../components/notice";
import { firstOf, Pager } from "../../components/pager";
import { countsText, TrialsBar } from "../../components/progress";
import { sorted, SortHead, useOrder } from "../../components/sort";
import { State, stateWord } from "../../components/state";
import { duration, moment, whole } from "../../format";
import { useResource } from "../../resource";
import { Link, sweepPath, useAddress } from "../../router";
import { useTitle } from "../../title";
import type { Sweeps, SweepSummary } from "./data";

const kKeys = {
  name: (s: SweepSummary) => s.name,
  state: (s: SweepSummary) => stateWord(s.state),
  done: (s: SweepSummary) => (s.trials.completed - s.trials.unfilled) / Math.max(1, s.trials.total),
  rows: (s: SweepSummary) => s.rows,
  eta: (s: SweepSummary) => s.eta_seconds,
  created: (s: SweepSummary) => s.created,
};

const kShown = 500;

export function SweepsPage() {
  useTitle("Sweeps");
  const first = firstOf(useAddress().searchParams);
  const sweeps = useResource<Sweeps>(`/sweeps?first=${first}&count=${kShown}`, () => true);
  return (
    <>
      <h1 tabIndex={-1}>Sweeps</h1>
      <Loaded of={sweeps} what="Sweeps">
        {({ sweeps: shown, left_out: others }) =>
          shown.length + others === 0 ? (
            <NoSweeps />
          ) : (
            <>
              <Pager first={first} size={kShown} total={shown.length + others} what="Sweeps" />
              <SweepTable sweeps={shown} />
            </>
          )
        }
      </Loaded>
    </>
  );
}

function NoSweeps() {
  return (
    <Notice kind="empty" title="No sweep has been submitted yet.">
      <p>A sweep is one file: the rows of an ablation table, and the seeds.</p>
      <pre>ablate plan FILE.yaml{"\n"}ablate submit FILE.yaml</pre>
    </Notice>
  );
}

function SweepTable({ sweeps }: { sweeps: SweepSummary[] }) {
  const order = useOrder("sort");
  return (
    <div class="panel scroll">
      <table class="wide">
        <caption class="sr-only">All sweeps, newest first unless sorted otherwise</caption>
        <thead>
          <tr>
            <SortHead order={order} column="name">
              Sweep
            </SortHead>
            <SortHead order={order} column="state">
              State
            </SortHead>
            <SortHead order={order} column="done" highFirst>
              Trials
            </SortHead>
            <SortHead order={order} column="rows" numeric highFirst>
              Rows × seeds
            </SortHead>
            <SortHead order={order} column="eta" numeric>
              Time left
            </SortHead>
            <SortHead order={order} column="created" numeric highFirst>
              Submitted
            </SortHead>
          </tr>
        </thead>
        <tbody>
          {sorted(sweeps, order, kKeys).map((sweep) => (
            <tr key={sweep.name}>
              <th scope="row">
                <Link class="strong" href={sweepPath(sweep.name)}>
                  {sweep.name}
                </Link>
              </th>
              <td>
                <State state={sweep.state} />
              </td>
              <td title={countsText(sweep.trials)}>
                <span class="bar-with-text">
                  <TrialsBar counts={sweep.trials} />
                  <span class="num">
                    {sweep.trials.completed - sweep.trials.unfilled}/{sweep.trials.total}
                    {sweep.trials.unfilled > 0 && <span class="warn">, {sweep.trials.unfilled} missing</span>}
                    {sweep.trials.failed > 0 && <span class="bad">, {sweep.trials.failed} failed</span>}
                  </span>
                </span>
              </td>
              <td class="num">
                {whole(sweep.rows)} × {whole(sweep.seeds)}
              </td>
              <td class="num">{duration(sweep.eta_seconds)}</td>
              <td class="num">
                {sweep.created ? <time dateTime={sweep.created}>{moment(sweep.created)}</time> : "–"}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
