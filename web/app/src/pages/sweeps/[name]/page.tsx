// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import { AfterPaint } from "../../../components/after_paint";
import { Loaded } from "../../../components/notice";
import { firstOf, Pager } from "../../../components/pager";
import { Pin } from "../../../acting/pin";
import { countsText, TrialsBar } from "../../../components/progress";
import { useOrder } from "../../../components/sort";
import { State } from "../../../components/state";
import { Tags } from "../../../components/tags";
import { Folded } from "../../../folded/folded";
import { between, duration, moment, plural } from "../../../format";
import type { Cell, SweepDetail, Table, TableRow } from "../../../generated/ablate";
import type { Page } from "../../../page";
import { kBaselineLook, lookOf, type Look } from "../../../palette";
import { useResource, type Resource } from "../../../resource";
import { comparePath, failuresPath, Link, sweepPath, useAddress, withQuery } from "../../../router";
import { RowActions, SweepActions } from "./actions";
import { CellSection } from "./cell";
import { brushesIn } from "./charts/brush";
import { BrushChip, brushedBy } from "./charts/brush_chip";
import { Frame } from "./charts/frame";
import { Charts } from "./charts/section";
import { Curves } from "./curves";
import { Notes } from "./notes";
import { FileSection } from "./file/section";
import { choiceOf, choiceText, needsAll } from "./table/choice";
import { kPiece, rowsIn } from "./table/pieces";
import { useRows } from "./table/rows";
import { formOf, isPivoted } from "./table/form";
import { TableSection } from "./table/section";
import { Trials } from "./trials";

export const page: Page = {
  title: (name) => name,
  View: ({ id }) => <SweepPage name={id} />,
};

function SweepPage({ name }: { name: string }) {
  const path = `/sweeps/${encodeURIComponent(name)}`;
  const mine = (change: { sweep: string }): boolean => change.sweep === name;
  const query = useAddress().searchParams;
  const first = Math.floor(firstOf(query) / kPiece) * kPiece;
  const part = `first=${first}&count=${kPiece}`;
  // of one part of the rows: the table reads its other parts itself; curves and trials show this part
  const detail = useResource<SweepDetail>(`${path}?${part}`, mine, `sweep ${name}`);
  const table = useResource<Table>(`${path}/table?${part}&statistics=1&long_form=1`, mine, `table ${name}`);
  const row = query.get("row");
  const looks = useMemo(() => looksOf(table.data), [table.data]);
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <Link href="/sweeps">Sweeps</Link>
      </nav>
      <div class="pinnable">
        <h1 tabIndex={-1}>{name}</h1>
        {detail.data && <Pin sweep={name} pinned={detail.data.summary.pinned} />}
      </div>
      <Loaded of={detail} what="The sweep" lines={2}>
        {(data) => (
          <>
            <Summary sweep={data} />
            <SweepActions sweep={data.summary} />
            <Notes sweep={name} notes={data.notes} />
          </>
        )}
      </Loaded>

      <TableAndCharts sweep={name} table={table} detail={detail.data} looks={looks} />

      {table.data && detail.data && (
        <AfterPaint>
          <section aria-labelledby="curves">
            <h2 id="curves">
              Curves
              {row !== null && <RowChip row={row} />}
              {row !== null && (
                <Link class="h2-link" href={comparePath(`${name}/${row}`)}>
                  Compare with another row
                </Link>
              )}
            </h2>
            <Pager
              first={first}
              size={kPiece}
              total={rowsIn(table.data)}
              what="Rows"
              note="curves and trials show these."
            />
            <Curves sweep={name} table={table.data} trials={detail.data.trials} looks={looks} row={row} />
          </section>
          <section aria-labelledby="trials">
            <h2 id="trials">
              Trials
              {row !== null && <RowChip row={row} />}
              {row !== null && <RowActions sweep={name} row={row} trials={detail.data.trials} />}
            </h2>
            <Trials
              sweep={name}
              trials={detail.data.trials}
              others={detail.data.left_out}
              table={table.data}
              row={row}
            />
          </section>
          <FileSection sweep={detail.data} />
          <Folded title="Events">{({ Events }) => <Events key={name} sweep={name} />}</Folded>
          <Folded title="Plan">{({ PlanAgain }) => <PlanAgain key={name} sweep={detail.data!} />}</Folded>
          <Folded title="Provenance">{({ Provenance }) => <Provenance sweep={name} />}</Folded>
        </AfterPaint>
      )}
    </>
  );
}

interface OfTable {
  sweep: string;
  /** The part of the table, a line for each row, that curves and trials are shown of. */
  table: Resource<Table>;
  /** The same of the trials. */
  detail: SweepDetail | undefined;
  looks: ReadonlyMap<string, Look>;
}

/** The table, one of its cells, and its charts: they share the rows that were read, and what is brushed in a chart is what the table shows. */
function TableAndCharts({ sweep, table, detail, looks }: OfTable) {
  const query = useAddress().searchParams;
  const [row, column] = [query.get("row"), query.get("column")];
  const part = table.data;
  const first = firstOf(new URLSearchParams(table.of?.split("?")[1]));
  const order = useOrder("sort");
  const brushText = query.getAll("brush").join("\n");
  const brushes = useMemo(() => brushesIn(query), [brushText]);
  const chosen = useMemo(() => choiceOf(query, order), [choiceText(query)]);
  const sorted = needsAll(chosen) && !isPivoted(part, formOf(query));
  const charts = query.has("chart") || brushes.length > 0;
  const known = useRows(
    `/sweeps/${encodeURIComponent(sweep)}/table?statistics=1&long_form=1`,
    part,
    first,
    { all: sorted || charts, sorted: sorted || brushes.length > 0 },
    (change) => change.sweep === sweep,
  );
  const frame = useMemo(
    () =>
      part && known.total > 0 && known.read === known.total
        ? new Frame(part, known.rows as TableRow[])
        : undefined,
    [part, known.rows],
  );
  const brushed = useMemo(() => brushedBy(frame, brushes), [frame, brushes]);
  const choice = useMemo(() => ({ ...chosen, only: brushed?.ids, kept: brushed?.kept }), [chosen, brushed]);
  return (
    <>
      <section aria-labelledby="table-heading">
        <h2 id="table-heading">
          Ablation table
          {part && <BrushChip frame={frame} brushes={brushes} brushed={brushed} total={known.total} />}
        </h2>
        <Loaded of={table} what="The table" lines={7}>
          {(data) => (
            <TableSection
              sweep={sweep}
              first={first}
              part={data}
              known={known}
              choice={choice}
              detail={detail}
              looks={looks}
              selected={row}
            />
          )}
        </Loaded>
      </section>

      {row !== null && column !== null && (
        <CellSection sweep={sweep} row={row} column={column} cell={cellOf(part, row, column)} />
      )}

      <section aria-labelledby="charts">
        <h2 id="charts">Charts</h2>
        <Loaded of={part ? { data: part } : { ...table }} what="The charts" lines={6}>
          {(data) => (
            <AfterPaint>
              <Charts
                table={data}
                known={known}
                frame={frame}
                choice={choice}
                brushes={brushes}
                brushed={brushed}
              />
            </AfterPaint>
          )}
        </Loaded>
      </section>
    </>
  );
}

function cellOf(table: Table | undefined, row: string, column: string): Cell | undefined {
  const place = table?.columns.findIndex(({ name }) => name === column) ?? -1;
  return table?.rows.find(({ id }) => id === row)?.cells[place];
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
      {summary.archived && <span class="muted">archived</span>}
      <TrialsBar counts={counts} />
      <span>{countsText(counts)}</span>
      {counts.failed + counts.held > 0 && <Link href={failuresPath(summary.name)}>failures</Link>}
      {summary.seeds > 0 && (
        <span class="muted">
          {plural(summary.rows, "row")} × {summary.seeds_min > 0 && `${summary.seeds_min} to `}
          {plural(summary.seeds, "seed")}
        </span>
      )}
      {summary.tuning && summary.seeds === 0 && (
        <span>
          search: <Link href={sweepPath(summary.tuning.sweep)}>its trials</Link>
        </span>
      )}
      {summary.tuning && summary.seeds > 0 && (
        <span>
          <Link href={sweepPath(summary.tuning.sweep)}>tuning</Link>: {countsText(summary.tuning.trials)},{" "}
          {summary.tuning.rows - summary.tuning.open - summary.tuning.failed} of{" "}
          {plural(summary.tuning.rows, "row")} tuned
        </span>
      )}
      {summary.tunes && (
        <span>
          tunes the rows of <Link href={sweepPath(summary.tunes)}>{summary.tunes}</Link>
        </span>
      )}
      {summary.eta_seconds !== undefined && <span>about {duration(summary.eta_seconds)} left</span>}
      <span class="muted">
        submitted <time dateTime={summary.created}>{moment(summary.created)}</time>
      </span>
      {summary.finished && <span class="muted">took {between(summary.created, summary.finished)}</span>}
      <Tags tags={summary.tags} />
      <Link href={comparePath(summary.name)}>compare with another sweep</Link>
    </div>
  );
}

/** Which row the page is narrowed to, and the way back. */
function RowChip({ row }: { row: string }) {
  return (
    <span class="chip">
      row {row}
      <Link
        href={withQuery({ row: null, column: null, state: null })}
        aria-label={`Show all rows, not only ${row}`}
      >
        ×
      </Link>
    </span>
  );
}
