// SPDX-License-Identifier: Apache-2.0
import { AfterPaint } from "../../components/after_paint";
import { Loaded } from "../../components/notice";
import { plural, rowName } from "../../format";
import type { ComparedMetric, ComparedRow, CompareResponse } from "../../generated/ablate";
import { useResource } from "../../resource";
import { Link, navigate, useAddress, withQuery } from "../../router";
import { kMaxPoints, MeanCurves } from "./curves";
import { metricName } from "./metrics";

/** Rows whose curves are drawn before anybody asks for more, and at most. */
const kFew = 4;
const kMost = 12;

/** Mean curves of A and B, a chart for each of the best rows. Each is read as by the page that compares the row alone. */
export function SweepCurves({ compared }: { compared: CompareResponse }) {
  const query = useAddress().searchParams;
  const columns = compared.rows[0]?.metrics ?? [];
  const place = Math.max(
    0,
    columns.findIndex((column) => metricName(column) === query.get("curve")),
  );
  const column = columns[place];
  const ranked = bestOf(compared.rows, place);
  if (!column || ranked.length === 0) return null;
  const all = query.get("curves") === "all";
  const drawn = ranked.slice(0, all ? kMost : kFew);
  const more = Math.min(kMost, ranked.length) - kFew;
  return (
    <section aria-labelledby="curves">
      <h2 id="curves">Mean curves</h2>
      <div class="controls">
        <label>
          Metric
          <select
            value={metricName(column)}
            onChange={(event) => navigate(withQuery({ curve: event.currentTarget.value }))}
          >
            {columns.map((each) => (
              <option key={metricName(each)} value={metricName(each)}>
                {metricName(each)}
              </option>
            ))}
          </select>
        </label>
        <span class="muted">
          {ranked.length > drawn.length &&
            `${column.better === "none" ? "The first" : "The best"} ${drawn.length} of ${plural(ranked.length, "row")} with values on both sides.`}
        </span>
      </div>
      <AfterPaint>
        <div class="panel run-charts">
          {drawn.map((row) => (
            <RowCurves
              key={`${row.id} ${column.metric}`}
              row={row}
              a={`${compared.a.sweep}/${row.id}`}
              b={`${compared.b.sweep}/${row.id}`}
              column={column}
            />
          ))}
        </div>
      </AfterPaint>
      {more > 0 && (
        <p>
          <Link href={withQuery({ curves: all ? null : "all" })}>
            {all ? "Show fewer" : `Show ${plural(more, "more row")}`}
          </Link>
        </p>
      )}
    </section>
  );
}

interface RowProps {
  row: ComparedRow;
  /** The row in both sweeps. */
  a: string;
  b: string;
  column: ComparedMetric;
}

function RowCurves({ row, a, b, column }: RowProps) {
  const sides = { a, b, metric: column.metric };
  const asked = new URLSearchParams({ ...sides, max_points: String(kMaxPoints) });
  const mine = [a, b].map((side) => side.slice(0, -row.id.length - 1));
  const read = useResource<CompareResponse>(`/compare?${asked}`, (change) => mine.includes(change.sweep));
  const name = rowName(row.id, row.label);
  return (
    <div>
      <Loaded of={read} what={`The curves of ${name}`} lines={5}>
        {({ metrics }) =>
          metrics[0]?.curves ? (
            <MeanCurves title={name} metric={metrics[0]} />
          ) : (
            <p class="muted">{name}: no curve, its runs have one point each, or have no step in common.</p>
          )
        }
      </Loaded>
      <p class="chart-notes">
        <Link href={`/compare?${new URLSearchParams({ a, b })}`}>Compare {name} alone</Link>
      </p>
    </div>
  );
}

/** Rows with runs on both sides, those first whose better side is the best of all. */
function bestOf(rows: ComparedRow[], place: number): ComparedRow[] {
  const better = rows[0]?.metrics[place]?.better;
  const both = rows.flatMap((row) => {
    const { a, b } = row.metrics[place]!;
    const means = [a.mean, b.mean].filter((mean) => typeof mean === "number");
    return a.runs.length > 0 && b.runs.length > 0 && means.length > 0 ? [{ row, means }] : [];
  });
  if (better === "higher") both.sort((x, y) => Math.max(...y.means) - Math.max(...x.means));
  if (better === "lower") both.sort((x, y) => Math.min(...x.means) - Math.min(...y.means));
  return both.map(({ row }) => row);
}
