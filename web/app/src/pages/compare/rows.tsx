// SPDX-License-Identifier: Apache-2.0
import { Notice } from "../../components/notice";
import { Pager } from "../../components/pager";
import { ColumnHead, TablePanel } from "../../components/table_panel";
import { plural, rowName } from "../../format";
import type { CompareResponse } from "../../generated/ablate";
import { Link } from "../../router";
import { MetricCells, MetricHeads, metricName } from "./metrics";

/** Rows that two sweeps have in common: a table for each metric that a column of both takes. */
export function SweepRows({
  compared,
  first,
  size,
}: {
  compared: CompareResponse;
  first: number;
  size: number;
}) {
  const { a, b, rows } = compared;
  const columns = rows[0]?.metrics ?? [];
  return (
    <section aria-labelledby="rows">
      <h2 id="rows">Rows in both</h2>
      {rows.length === 0 && <Notice kind="empty" title="The sweeps have no rows in common." />}
      {rows.length > 0 && columns.length === 0 && (
        <Notice kind="empty" title="The sweeps have no metric column in common." />
      )}
      <Pager first={first} size={size} total={compared.common} what="Rows" />
      {columns.map((column, i) => (
        <TablePanel
          key={`${column.take} ${column.metric}`}
          caption={metricName(column)}
          titled
          tall
          head={
            <>
              <ColumnHead>Row</ColumnHead>
              <MetricHeads of={rows.map((row) => row.metrics[i]!)} />
            </>
          }
        >
          {rows.map((row) => (
            <tr key={row.id}>
              <th scope="row">
                <Link
                  href={`/compare?a=${encodeURIComponent(`${a.sweep}/${row.id}`)}&b=${encodeURIComponent(`${b.sweep}/${row.id}`)}`}
                  title={rowName(row.id, row.label)}
                >
                  <span class="name">{rowName(row.id, row.label)}</span>
                </Link>
              </th>
              <MetricCells metric={row.metrics[i]!} />
            </tr>
          ))}
        </TablePanel>
      ))}
      <Lonely letter="A" ids={compared.only_a} all={a.rows - compared.common} />
      <Lonely letter="B" ids={compared.only_b} all={b.rows - compared.common} />
    </section>
  );
}

function Lonely({ letter, ids, all }: { letter: string; ids: string[]; all: number }) {
  if (ids.length === 0) return null;
  return (
    <p class="muted">
      Only in {letter}: {ids.join(", ")}
      {all > ids.length && ` and ${plural(all - ids.length, "more row")}`}
    </p>
  );
}
