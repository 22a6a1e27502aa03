// SPDX-License-Identifier: Apache-2.0
import { Fragment } from "preact";
import { act, type Method } from "../../acting/act";
import { ActionButton } from "../../acting/button";
import { useCaller } from "../../acting/caller";
import type { Said } from "../../acting/said";
import { Loaded, Notice } from "../../components/notice";
import { ColumnHead, TablePanel } from "../../components/table_panel";
import { plain, plural, rowName, whole, withMinus } from "../../format";
import type { PaperAgreement, PaperTable, SweepSummary, Table } from "../../generated/ablate";
import { useResource } from "../../resource";
import { Link, rowPath, sweepPath, useAddress, withQuery } from "../../router";
import { retry } from "../sweeps/[name]/actions";
import { SubmitTable } from "./submit_table";

/** As the command line names it: "msf/table-1". */
export const nameOf = (table: PaperTable): string => `${table.paper}/${table.table}`;

/** A table of a paper: our values beside the paper's, how well both agree, what is missing, and the command that fills it. */
export function OneTable({ table }: { table: PaperTable }) {
  const wanted = useAddress().searchParams.get("sweep");
  const sweep = table.stored.find((stored) => stored.name === wanted) ?? table.stored[0];
  const name = nameOf(table);
  return (
    <section aria-labelledby="one" class="one-table">
      <h2 id="one">
        {name}: {table.title}
        <span class="chip">
          <Link href={withQuery({ table: null, sweep: null })} aria-label="Close this table">
            ×
          </Link>
        </span>
      </h2>
      <SubmitTable table={table} name={name} />
      {table.stored.length > 1 && (
        <p class="switch" role="group" aria-label="Sweeps of this table">
          {table.stored.map((stored) => (
            <Link
              key={stored.name}
              href={withQuery({ sweep: stored.name })}
              {...(stored === sweep ? { "aria-current": "true" as const } : {})}
            >
              {stored.name}
            </Link>
          ))}
        </p>
      )}
      {sweep ? <Stored table={table} sweep={sweep} /> : <NotStored table={table} />}
    </section>
  );
}

function NotStored({ table }: { table: PaperTable }) {
  const name = nameOf(table);
  return (
    <Notice kind="empty" title="No sweep of this table is stored.">
      {table.trained === 0 ? (
        <p>None of its rows can be trained here. To see the paper's values:</p>
      ) : (
        <p>
          {whole(table.trained)} of {plural(table.rows, "row")} can be trained. To see the cost, train a small
          version, and train the paper's own:
        </p>
      )}
      <pre>
        {table.trained === 0
          ? `ablate papers ${name}`
          : `ablate plan ${name}\nablate reproduce ${name} --scale cifar\nablate reproduce ${name}`}
      </pre>
    </Notice>
  );
}

interface Missing {
  what: string;
  command: string;
  act?: { label: string; method: Method; run: () => Promise<Said | undefined> };
}

/** What is missing, and what fills it. */
function missingOf({ name, state, trials }: SweepSummary): Missing[] {
  const found: Missing[] = [];
  if (state === "SWEEP_STATE_PAUSED" && trials.queued > 0)
    found.push({
      what: `${plural(trials.queued, "trial")} paused`,
      command: `ablate resume ${name}`,
      act: {
        label: "Resume",
        method: "ResumeSweep",
        run: async () => {
          await act("ResumeSweep", { sweep: name });
          return { text: `Resumed ${name}.` };
        },
      },
    });
  else if (trials.queued + trials.running + trials.leased > 0)
    found.push({
      what: `${plural(trials.queued + trials.running + trials.leased, "trial")} running or queued`,
      command: `ablate watch ${name}`,
    });
  if (trials.failed + trials.held + trials.cancelled > 0)
    found.push({
      what: `${plural(trials.failed + trials.held + trials.cancelled, "trial")} failed, held or cancelled`,
      command: `ablate retry ${name}`,
      act: { label: "Retry", method: "RetrySweep", run: () => retry({ sweep: name }) },
    });
  if (trials.unfilled > 0)
    found.push({
      what: `${plural(trials.unfilled, "completed trial")} without a metric of the table`,
      command: `ablate retry ${name} --missing`,
      act: { label: "Rerun", method: "RetrySweep", run: () => retry({ sweep: name, unfilled: true }) },
    });
  return found;
}

function Stored({ table, sweep }: { table: PaperTable; sweep: SweepSummary }) {
  const stored = useResource<Table>(
    `/sweeps/${encodeURIComponent(sweep.name)}/table?count=1000&long_form=1`,
    (change) => change.sweep === sweep.name,
  );
  const caller = useCaller();
  const missing = missingOf(sweep);
  return (
    <>
      <p class="muted">
        <Link href={sweepPath(sweep.name)}>{sweep.name}</Link>: {whole(sweep.rows)} of the paper's{" "}
        {plural(table.rows, "row")}
      </p>
      {missing.length > 0 && (
        <ul class="missing-list">
          {missing.map(({ what, command, act: fill }) => (
            <li key={command}>
              {what}: <code>{command}</code>{" "}
              {fill && caller?.may.includes(fill.method) && (
                <ActionButton quiet label={fill.label} name={`${fill.label} ${sweep.name}`} run={fill.run} />
              )}
            </li>
          ))}
        </ul>
      )}
      <Loaded of={stored} what="The table" lines={6}>
        {(data) => (
          <>
            <Agreement agreements={data.paper_agreement} table={data} />
            <Beside table={data} />
          </>
        )}
      </Loaded>
    </>
  );
}

/** Whether our rows rank in the paper's order. */
function Agreement({ agreements, table }: { agreements: PaperAgreement[]; table: Table }) {
  if (agreements.length === 0) return <p class="muted">Too few rows have both our value and the paper's.</p>;
  const heading = (name: string) => table.columns.find((column) => column.name === name)?.heading ?? name;
  return (
    <ul class="missing-list">
      {agreements.map((agreement) => (
        <li key={agreement.column}>
          {heading(agreement.column)}, {plural(agreement.rows, "row")}:{" "}
          {agreement.tau === undefined ? (
            agreement.why || "no rank agreement"
          ) : (
            <>
              rank agreement τ = <span class="num">{plain(agreement.tau)}</span>
              {agreement.tau_interval && (
                <span class="muted num">
                  {" "}
                  ({plain(agreement.tau_interval.low)} to {plain(agreement.tau_interval.high)})
                </span>
              )}
            </>
          )}
          {agreement.signs > 0 &&
            `; ${agreement.same_signs} of ${plural(agreement.signs, "difference")} from the baseline ${agreement.same_signs === 1 ? "has" : "have"} the paper's sign`}
        </li>
      ))}
    </ul>
  );
}

/** Our values beside the paper's, in the columns that it prints. */
function Beside({ table }: { table: Table }) {
  const columns = table.columns
    .map((column, place) => ({ column, place }))
    .filter(({ column }) => column.has_paper);
  if (columns.length === 0) return <p class="muted">The paper has no values for this table.</p>;
  return (
    <TablePanel
      caption={`Ours beside ${table.paper_heading || "the paper's"}`}
      tall
      head={
        <>
          <th scope="col" rowSpan={2}>
            Row
          </th>
          {columns.map(({ column }) => (
            <th scope="colgroup" colSpan={3} key={column.name} title={column.heading}>
              <span class="name">
                {column.heading}
                {column.unit && ` (${column.unit})`}
              </span>
            </th>
          ))}
        </>
      }
      subhead={
        <>
          {columns.map(({ column }) => (
            <Fragment key={column.name}>
              <ColumnHead num>ours</ColumnHead>
              <ColumnHead num>paper</ColumnHead>
              <ColumnHead num>difference</ColumnHead>
            </Fragment>
          ))}
        </>
      }
    >
      {table.rows.map((row) => (
        <tr key={row.id}>
          <th scope="row">
            <Link href={rowPath(table.sweep, row.id)} title={row.label}>
              <span class="name">{rowName(row.id, row.label)}</span>
            </Link>
          </th>
          {columns.map(({ column, place }) => {
            const cell = row.cells[place];
            const missing = row.not_trained_why || cell?.missing;
            return (
              <Fragment key={column.name}>
                <td class="num" title={missing}>
                  {cell && !missing ? (
                    cell.text
                  ) : (
                    <span class="muted">{row.not_trained ? "not trained" : "missing"}</span>
                  )}
                </td>
                <td class="num paper">{cell?.paper || "–"}</td>
                <td class="num">{withMinus(cell?.paper_difference ?? "") || "–"}</td>
              </Fragment>
            );
          })}
        </tr>
      ))}
    </TablePanel>
  );
}
