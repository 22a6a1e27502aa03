// SPDX-License-Identifier: Apache-2.0
import { Pin } from "../../acting/pin";
import { Loaded, Notice } from "../../components/notice";
import { ForecastText } from "../../components/forecast";
import { countsText, filled, TrialsBar } from "../../components/progress";
import { SortHead, useOrder } from "../../components/sort";
import { State } from "../../components/state";
import { ColumnHead, TablePanel } from "../../components/table_panel";
import { Tags } from "../../components/tags";
import { moment, plural, whole } from "../../format";
import type { ListSweepsResponse, SearchResponse, SweepSummary } from "../../generated/ablate";
import type { Page } from "../../page";
import { useResource, type Resource } from "../../resource";
import { Link, sweepPath, useAddress, withQuery } from "../../router";
import { QueryBox } from "./query_box";

const kShown = 100;

export const page: Page = {
  title: "Sweeps",
  nav: 1,
  View: SweepsPage,
};

/** A page of the list, or of what a query found. */
interface Shown {
  sweeps: SweepSummary[];
  /** How many there are in all. */
  all: number;
  next: string;
  notes: string[];
  /** How many are not shown because they are archived. */
  archived: number;
}

function SweepsPage() {
  const address = useAddress().searchParams;
  const query = address.get("q") ?? "";
  const sort = address.get("sort") ?? "";
  const after = address.get("after") ?? "";
  const searched = query !== "" || sort !== "";
  const parameters = new URLSearchParams({ count: String(kShown) });
  if (!searched) parameters.set("listed", "1");
  if (after) parameters.set("after", after);
  if (query) parameters.set("query", query);
  if (sort) parameters.set("sort", sort);
  const answer = useResource<ListSweepsResponse | SearchResponse>(
    `/${searched ? "search" : "sweeps"}?${parameters}`,
    () => true,
    "sweeps",
  );
  // a wrong query is reported beside the box, and the sweeps found before stay
  const wrong = searched && answer.error?.code === "INVALID_ARGUMENT" ? answer.error.message : "";
  const shown: Resource<Shown> = {
    ...(answer.data ? { data: shownOf(answer.data) } : {}),
    ...(answer.error && !wrong ? { error: answer.error } : {}),
  };
  const nothingStored = !searched && !after && shown.data?.sweeps.length === 0 && shown.data.archived === 0;
  return (
    <>
      <h1 tabIndex={-1}>Sweeps</h1>
      {!nothingStored && <QueryBox query={query} wrong={wrong} />}
      {!(wrong && !answer.data) && (
        <Loaded of={shown} what="Sweeps">
          {(data) =>
            nothingStored ? (
              <NoSweeps />
            ) : (
              <>
                {data.notes.map((note) => (
                  <p key={note} class="muted">
                    {note}
                  </p>
                ))}
                {data.sweeps.length === 0 ? (
                  <Notice
                    kind="empty"
                    title={
                      searched
                        ? "No sweep matches."
                        : after
                          ? "There are no more sweeps."
                          : "Every sweep is archived."
                    }
                  />
                ) : (
                  <SweepTable sweeps={data.sweeps} />
                )}
                <Pages shown={data} after={after} />
                {data.archived > 0 && !after && <Archived count={data.archived} query={query} />}
              </>
            )
          }
        </Loaded>
      )}
    </>
  );
}

function shownOf(answer: ListSweepsResponse | SearchResponse): Shown {
  if ("matching" in answer) return { ...answer, all: answer.matching };
  return { ...answer, all: answer.left_out + answer.sweeps.length, notes: [] };
}

/** Pages go on from the last sweep that is shown, so that new sweeps move nothing. */
function Pages({ shown, after }: { shown: Shown; after: string }) {
  if (!after && !shown.next) return null;
  return (
    <nav class="pager" aria-label="Pages of sweeps">
      <span>
        {whole(shown.sweeps.length)} of {plural(shown.all, "sweep")}
      </span>
      {after && <Link href={withQuery({ after: null })}>First page</Link>}
      {shown.next && <Link href={withQuery({ after: shown.next })}>Next page</Link>}
    </nav>
  );
}

/** That some are left out, and the way to them. */
function Archived({ count, query }: { count: number; query: string }) {
  return (
    <p class="muted">
      {plural(count, "archived sweep")} {query && (count === 1 ? "matches, too" : "match, too")}:{" "}
      <Link href={withQuery({ q: `${query} is:archived`.trim(), after: null })}>show</Link>
    </p>
  );
}

function NoSweeps() {
  return (
    <Notice kind="empty" title="No sweeps yet.">
      <p>A sweep is one file: the rows of an ablation table and the seeds.</p>
      <pre>ablate plan FILE.yaml{"\n"}ablate submit FILE.yaml</pre>
      <p>
        <Link href="/tables">The papers' tables</Link> are built in.
      </p>
    </Notice>
  );
}

function SweepTable({ sweeps }: { sweeps: SweepSummary[] }) {
  const order = useOrder("sort");
  return (
    <TablePanel
      caption="Sweeps: pinned ones first, then the newest, unless sorted otherwise"
      head={
        <>
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
          <SortHead order={order} column="owner">
            Owner
          </SortHead>
          <ColumnHead>Complete</ColumnHead>
          <SortHead order={order} column="created" numeric highFirst>
            Submitted
          </SortHead>
        </>
      }
    >
      {sweeps.map((sweep) => (
        <SweepRow key={sweep.name} sweep={sweep} />
      ))}
    </TablePanel>
  );
}

function SweepRow({ sweep }: { sweep: SweepSummary }) {
  const trials = sweep.trials;
  return (
    <tr>
      <th scope="row">
        <span class="pinnable">
          <Pin sweep={sweep.name} pinned={sweep.pinned} />
          <Link class="strong" href={sweepPath(sweep.name)} title={sweep.name}>
            <span class="name">{sweep.name}</span>
          </Link>
          <Tags tags={sweep.tags} />
        </span>
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
      <td>
        <span class="name" title={sweep.owner}>
          {sweep.owner || "–"}
        </span>
      </td>
      <td>
        <ForecastText sweep={sweep} />
      </td>
      <td class="num">
        <time dateTime={sweep.created}>{moment(sweep.created)}</time>
      </td>
    </tr>
  );
}
