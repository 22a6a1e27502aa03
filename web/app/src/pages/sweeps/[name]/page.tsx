// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import { Loaded } from "../../../components/notice";
import { firstOf, Pager } from "../../../components/pager";
import { countsText, TrialsBar } from "../../../components/progress";
import { State } from "../../../components/state";
import { between, duration, moment, plural } from "../../../format";
import type { SweepDetail, Table } from "../../../generated/ablate";
import type { Page } from "../../../page";
import { kBaselineLook, lookOf, type Look } from "../../../palette";
import { useResource } from "../../../resource";
import { Link, useAddress, withQuery } from "../../../router";
import { AblationTable } from "./ablation_table";
import { CellSection } from "./cell";
import { Curves } from "./curves";
import { ProvenanceSection } from "./provenance";
import { Trials } from "./trials";

export const page: Page = {
  title: (name) => name,
  View: ({ id }) => <SweepPage name={id} />,
};

/** Of a long table at once. */
const kRowsShown = 200;
/** Of a pivoted table, which has no pages: a line stands for several rows. */
const kLinesShown = 1000;

function SweepPage({ name }: { name: string }) {
  const path = `/sweeps/${encodeURIComponent(name)}`;
  const mine = (change: { sweep: string }): boolean => change.sweep === name;
  const query = useAddress().searchParams;
  const first = firstOf(query);
  const part = `?first=${first}&count=${kRowsShown}`;
  const detail = useResource<SweepDetail>(path + part, mine);
  const table = useResource<Table>(`${path}/table${part}&statistics=1&long_form=1`, mine);
  const lines = useResource<Table>(
    table.data?.pivot ? `${path}/table?count=${kLinesShown}&statistics=1` : null,
    mine,
  );
  const row = query.get("row");
  const column = query.get("column");
  const looks = useMemo(() => looksOf(table.data), [table.data]);
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <Link href="/">Sweeps</Link>
      </nav>
      <h1 tabIndex={-1}>{name}</h1>
      <Loaded of={detail} what="The sweep" lines={2}>
        {(data) => <Summary sweep={data} />}
      </Loaded>

      <section aria-labelledby="table-heading">
        <h2 id="table-heading">Ablation table</h2>
        <Loaded of={table} what="The table" lines={7}>
          {(data) => (
            <>
              <Pager first={first} size={kRowsShown} total={data.rows.length + data.left_out} what="Rows" />
              {data.pivot && lines.data && (
                <AblationTable
                  table={lines.data}
                  trials={detail.data?.trials ?? []}
                  looks={looksOf(lines.data)}
                  selected={row}
                  partial={data.left_out > 0}
                />
              )}
              {lines.data && lines.data.left_out > 0 && (
                <p class="muted">
                  {plural(lines.data.left_out, "more line")} in ablate table {name}
                </p>
              )}
              {data.pivot ? (
                <details>
                  <summary>A line for each row</summary>
                  <AblationTable
                    table={data}
                    trials={detail.data?.trials ?? []}
                    looks={looks}
                    selected={row}
                  />
                </details>
              ) : (
                <AblationTable table={data} trials={detail.data?.trials ?? []} looks={looks} selected={row} />
              )}
            </>
          )}
        </Loaded>
      </section>

      {row !== null && column !== null && <CellSection sweep={name} row={row} column={column} />}

      {table.data && detail.data && (
        <>
          <section aria-labelledby="curves">
            <h2 id="curves">
              Curves
              {row !== null && <RowChip row={row} />}
            </h2>
            <Curves sweep={name} table={table.data} trials={detail.data.trials} looks={looks} row={row} />
          </section>
          <section aria-labelledby="trials">
            <h2 id="trials">
              Trials
              {row !== null && <RowChip row={row} />}
            </h2>
            <Trials trials={detail.data.trials} others={detail.data.left_out} table={table.data} row={row} />
          </section>
          <details class="source">
            <summary>Sweep file{detail.data.file && <code>{detail.data.file}</code>}</summary>
            <pre tabIndex={0}>{detail.data.text}</pre>
          </details>
          <ProvenanceSection sweep={name} />
        </>
      )}
    </>
  );
}

function looksOf(table: Table | undefined): Map<string, Look> {
  const looks = new Map<string, Look>();
  let others = 0;
  for (const row of table?.rows ?? [])
    looks.set(row.id, row.id === table?.baseline ? kBaselineLook : lookOf(others++));
  return looks;
}

function Summary({ sweep }: { sweep: SweepDetail }) {
  const summary = sweep.summary;
  const counts = summary.trials;
  return (
    <div class="summary">
      <State state={summary.state} />
      <TrialsBar counts={counts} />
      <span>{countsText(counts)}</span>
      {summary.seeds > 0 && (
        <span class="muted">
          {plural(summary.rows, "row")} × {summary.seeds_min > 0 && `${summary.seeds_min} to `}
          {plural(summary.seeds, "seed")}
        </span>
      )}
      {summary.tuning && summary.seeds === 0 && (
        <span>
          a search: <Link href={`/sweeps/${encodeURIComponent(summary.tuning.sweep)}`}>trials of its points</Link>
        </span>
      )}
      {summary.tuning && summary.seeds > 0 && (
        <span>
          <Link href={`/sweeps/${encodeURIComponent(summary.tuning.sweep)}`}>tuning</Link>:{" "}
          {countsText(summary.tuning.trials)},{" "}
          {summary.tuning.rows - summary.tuning.open - summary.tuning.failed} of{" "}
          {plural(summary.tuning.rows, "row")} tuned
        </span>
      )}
      {summary.tunes && (
        <span>
          tunes the rows of <Link href={`/sweeps/${encodeURIComponent(summary.tunes)}`}>{summary.tunes}</Link>
        </span>
      )}
      {summary.eta_seconds !== undefined && <span>about {duration(summary.eta_seconds)} left</span>}
      <span class="muted">
        submitted <time dateTime={summary.created}>{moment(summary.created)}</time>
      </span>
      {summary.finished && <span class="muted">took {between(summary.created, summary.finished)}</span>}
    </div>
  );
}

/** Which row the page is narrowed to, and the way back. */
function RowChip({ row }: { row: string }) {
  return (
    <span class="chip">
      row {row}
      <Link
        href={withQuery({ row: null, column: null })}
        aria-label={`Show every row again, not only ${row}`}
      >
        ×
      </Link>
    </span>
  );
}
