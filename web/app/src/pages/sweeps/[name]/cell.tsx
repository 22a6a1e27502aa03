// SPDX-License-Identifier: Apache-2.0
import { Loaded } from "../../../components/notice";
import { State } from "../../../components/state";
import { ColumnHead, ScrollPanel } from "../../../components/table_panel";
import { plural } from "../../../format";
import type { Cell, WhyPart, WhyResponse, WhyValue } from "../../../generated/ablate";
import { useResource } from "../../../resource";
import { Link, runPath, withQuery } from "../../../router";

/** How long changes wait that leave the cell as it is: where nobody keeps the table, the server reads the whole sweep for the answer. */
const kSlowMs = 15_000;

/** How one cell came about: the runs behind it, with their seeds, values and hosts (`ablate why` says the same). */
export function CellSection(props: {
  sweep: string;
  row: string;
  column: string;
  /** As the table has it now, if it does. */
  cell: Cell | undefined;
}) {
  const { sweep, row, column, cell } = props;
  const query = `row=${encodeURIComponent(row)}&column=${encodeURIComponent(column)}`;
  const why = useResource<WhyResponse>(
    `/sweeps/${encodeURIComponent(sweep)}/why?${query}`,
    (change) => change.sweep === sweep,
    undefined,
    { ms: kSlowMs, watched: JSON.stringify(cell ?? null) },
  );
  return (
    <section aria-labelledby="cell">
      <h2 id="cell">
        Cell
        <span class="chip">
          {row}, {column}
          <Link href={withQuery({ column: null })} aria-label={`Close cell ${column} of row ${row}`}>
            ×
          </Link>
        </span>
      </h2>
      <Loaded of={why} what="The cell" lines={4}>
        {(data) => <Why why={data} />}
      </Loaded>
    </section>
  );
}

function Why({ why }: { why: WhyResponse }) {
  return (
    <ScrollPanel class="cell-panel">
      <p>
        <strong>{why.cell.text || "–"}</strong>
        {why.how && ` ${why.how}`}
        {why.cell.missing && <span class="muted"> {why.cell.missing}</span>}
      </p>
      {why.cell.statistics?.lines.map((line) => (
        <p key={line} class="muted">
          {line}
        </p>
      ))}
      {why.cell.paper && (
        <p>
          {why.paper_heading || "paper"}: {why.cell.paper}
        </p>
      )}
      {why.values.length > 0 && <Values values={why.values} what="The values of the cell" />}
      {why.parts.map((part) => (
        <Part key={part.name} part={part} />
      ))}
      {why.differences.length > 0 && (
        <details>
          <summary>
            {plural(why.differences.length, "setting differs", "settings differ")} from the baseline,{" "}
            {why.baseline}
          </summary>
          <table>
            <thead>
              <tr>
                <ColumnHead>Key</ColumnHead>
                <ColumnHead>Here</ColumnHead>
                <ColumnHead>Baseline</ColumnHead>
              </tr>
            </thead>
            <tbody>
              {why.differences.map((one) => (
                <tr key={one.key}>
                  <th scope="row">
                    <code>{one.key}</code>
                  </th>
                  <td>
                    <code>{one.value || "–"}</code>
                  </td>
                  <td>
                    <code>{one.baseline || "–"}</code>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </details>
      )}
      {why.notes.length > 0 && (
        <ul class="notes">
          {why.notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      )}
    </ScrollPanel>
  );
}

/** What a name of an expression stands for in this row. */
function Part({ part }: { part: WhyPart }) {
  return (
    <>
      <p>
        <code>{part.name}</code> {part.text} <span class="muted">{part.how}</span>
      </p>
      {part.values.length > 0 && <Values values={part.values} what={`The values of ${part.name}`} />}
    </>
  );
}

function Values({ values, what }: { values: WhyValue[]; what: string }) {
  return (
    <table class="wide">
      <caption class="sr-only">{what}</caption>
      <thead>
        <tr>
          <ColumnHead num>Seed</ColumnHead>
          <ColumnHead num>Value</ColumnHead>
          <ColumnHead num>Step</ColumnHead>
          <ColumnHead>Trial</ColumnHead>
          <ColumnHead>Run</ColumnHead>
          <ColumnHead num>Attempt</ColumnHead>
          <ColumnHead>Worker</ColumnHead>
          <ColumnHead>Host</ColumnHead>
        </tr>
      </thead>
      <tbody>
        {values.map((value) => {
          const run = value.run?.summary;
          return (
            <tr key={value.seed}>
              <th scope="row" class="num">
                {value.seed}
              </th>
              <td class="num">
                {value.value ?? <span class="muted">{value.missing || "–"}</span>}
                {value.value !== undefined && value.missing && <span class="muted"> {value.missing}</span>}
              </td>
              <td class="num">{value.step || ""}</td>
              <td>
                <State state={value.state} />
              </td>
              <td>{run ? <Link href={runPath(run.id)}>run {run.id}</Link> : "–"}</td>
              <td class="num">{run?.attempt ?? ""}</td>
              <td>{run?.worker}</td>
              <td>{run?.host}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
