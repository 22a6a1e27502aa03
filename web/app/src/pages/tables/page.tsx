// SPDX-License-Identifier: Apache-2.0
import { Loaded, Notice } from "../../components/notice";
import { countsText, filled, TrialsBar } from "../../components/progress";
import { ColumnHead, TablePanel } from "../../components/table_panel";
import { plural, whole } from "../../format";
import type { PapersResponse, PaperTable, SweepSummary } from "../../generated/ablate";
import type { Page } from "../../page";
import { useResource } from "../../resource";
import { Link, sweepPath, useAddress, withQuery } from "../../router";
import { nameOf, OneTable } from "./one_table";

export const page: Page = {
  title: "Tables",
  nav: 2,
  View: TablesPage,
};

/** Titles of the papers. */
const kPapers: Record<string, string> = {
  "manifold-key": "A Manifold Representation of the Key in Vision Transformers",
  msf: "Mean-Shift Feature Transformer",
  sne: "Rethinking Query, Key, and Value Embedding in Vision Transformer",
  xcit: "XCiT: Cross-Covariance Image Transformers",
};

/** The papers' tables, and how much of each is stored. `?table=msf/table-1` shows one beside the paper's. */
function TablesPage() {
  const papers = useResource<PapersResponse>("/papers", () => true);
  const chosen = useAddress().searchParams.get("table");
  return (
    <>
      <h1 tabIndex={-1}>Tables of the papers</h1>
      <Loaded of={papers} what="Tables" lines={8}>
        {({ tables }) => {
          const one = tables.find((table) => nameOf(table) === chosen);
          return (
            <>
              {chosen !== null && !one && (
                <Notice kind="empty" title={`Unknown table ${chosen}`}>
                  <Link href={withQuery({ table: null, sweep: null })}>Show all tables</Link>
                </Notice>
              )}
              {one && <OneTable key={nameOf(one)} table={one} />}
              <p class="lead">
                {whole(tables.filter((table) => table.stored.length > 0).length)} of{" "}
                {plural(tables.length, "table")} stored. <code>ablate reproduce {"TABLE"}</code> trains one.
              </p>
              {[...new Set(tables.map((table) => table.paper))].map((paper) => (
                <Paper key={paper} paper={paper} tables={tables.filter((table) => table.paper === paper)} />
              ))}
            </>
          );
        }}
      </Loaded>
    </>
  );
}

function Paper({ paper, tables }: { paper: string; tables: PaperTable[] }) {
  const id = `paper-${paper}`;
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{kPapers[paper] ?? paper}</h2>
      <TablePanel
        caption={`Tables of ${kPapers[paper] ?? paper}`}
        head={
          <>
            <ColumnHead>Table</ColumnHead>
            <ColumnHead>Title</ColumnHead>
            <ColumnHead num>Rows</ColumnHead>
            <ColumnHead num>Can be trained</ColumnHead>
            <ColumnHead num>Printed values</ColumnHead>
            <ColumnHead>Stored</ColumnHead>
          </>
        }
      >
        {tables.map((table) => (
          <tr key={table.table}>
            <th scope="row">
              <Link class="strong" href={`/tables?table=${encodeURIComponent(nameOf(table))}`}>
                {table.table}
              </Link>
            </th>
            <td>{table.title}</td>
            <td class="num">{whole(table.rows)}</td>
            <td class="num">
              {table.trained === 0 ? <span class="muted">none</span> : whole(table.trained)}
            </td>
            <td class="num">{whole(table.printed)}</td>
            <td>
              {table.stored.length === 0 ? (
                <span class="muted">not stored</span>
              ) : (
                table.stored.map((sweep) => <StoredSweep key={sweep.name} sweep={sweep} />)
              )}
            </td>
          </tr>
        ))}
      </TablePanel>
    </section>
  );
}

function StoredSweep({ sweep }: { sweep: SweepSummary }) {
  return (
    <div class="bar-with-text" title={countsText(sweep.trials)}>
      <TrialsBar counts={sweep.trials} />
      <Link href={sweepPath(sweep.name)} title={sweep.name}>
        <span class="name">{sweep.name}</span>
      </Link>
      <span class="num muted">
        {whole(filled(sweep.trials))}/{whole(sweep.trials.total)}
      </span>
    </div>
  );
}
