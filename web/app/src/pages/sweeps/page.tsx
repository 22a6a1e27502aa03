// SPDX-License-Identifier: Apache-2.0
import { Loaded, Notice } from "../../components/notice";
import { firstOf, Pager } from "../../components/pager";
import { countsText, TrialsBar } from "../../components/progress";
import { sorted, SortHead, useOrder } from "../../components/sort";
import { State, stateWord } from "../../components/state";
import { duration, moment, whole } from "../../format";
import type { ListSweepsResponse, SweepSummary, TrialCounts } from "../../generated/ablate";
import type { Page } from "../../page";
import { useResource } from "../../resource";
import { Link, sweepPath, useAddress } from "../../router";

/** Completed, with a value for every column. */
const filled = (trials: TrialCounts): number => trials.completed - trials.unfilled;

const kKeys = {
  name: (s: SweepSummary) => s.name,
  state: (s: SweepSummary) => stateWord(s.state),
  done: ({ trials }: SweepSummary) => filled(trials) / Math.max(1, trials.total),
  rows: (s: SweepSummary) => s.rows,
  eta: (s: SweepSummary) => s.eta_seconds,
  created: (s: SweepSummary) => s.created,
};

const kShown = 500;

export const page: Page = {
  title: "Sweeps",
  nav: 0,
  View: SweepsPage,
};

function SweepsPage() {
  const first = firstOf(useAddress().searchParams);
  const sweeps = useResource<ListSweepsResponse>(`/sweeps?first=${first}&count=${kShown}`, () => true);
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
            <SweepRow key={sweep.name} sweep={sweep} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function SweepRow({ sweep }: { sweep: SweepSummary }) {
  const trials = sweep.trials;
  return (
    <tr>
      <th scope="row">
        <Link class="strong" href={sweepPath(sweep.name)}>
          {sweep.name}
        </Link>
      </th>
      <td>
        <State state={sweep.state} />
      </td>
      <td title={countsText(trials)}>
        <span class="bar-with-text">
          <TrialsBar counts={trials} />
          <span class="num">
            {filled(trials)}/{trials.total}
            {trials.unfilled > 0 && <span class="warn">, {trials.unfilled} missing</span>}
            {trials.failed > 0 && <span class="bad">, {trials.failed} failed</span>}
          </span>
        </span>
      </td>
      <td class="num">
        {sweep.seeds === 0
          ? "search"
          : `${whole(sweep.rows)} × ${sweep.seeds_min > 0 ? `${whole(sweep.seeds_min)} to ` : ""}${whole(sweep.seeds)}`}
      </td>
      <td class="num">{duration(sweep.eta_seconds)}</td>
      <td class="num">
        <time dateTime={sweep.created}>{moment(sweep.created)}</time>
      </td>
    </tr>
  );
}
