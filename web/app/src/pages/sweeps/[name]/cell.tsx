// SPDX-License-Identifier: Apache-2.0
import { Loaded } from "../../../components/notice";
import { State } from "../../../components/state";
import { plural } from "../../../format";
import type { WhyPart, WhyResponse, WhyValue } from "../../../generated/ablate";
import { useResource } from "../../../resource";
import { Link, runPath, withQuery } from "../../../router";

/** How one cell came about: the runs behind it, with their seeds, values and hosts (`ablate why` says the same). */
export function CellSection({ sweep, row, column }: { sweep: string; row: string; column: string }) {
  const query = `row=${encodeURIComponent(row)}&column=${encodeURIComponent(column)}`;
  const why = useResource<WhyResponse>(
    `/sweeps/${encodeURIComponent(sweep)}/why?${query}`,
    (change) => change.sweep === sweep,
  );
  return (
    <section aria-labelledby="cell">
      <h2 id="cell">
        Cell
        <span class="chip">
          {row}, {column}
          <Link
            href={withQuery({ column: null })}
            aria-label={`Close what is said of ${column} of row ${row}`}
          >
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
    <div class="panel scroll">
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
                <th scope="col">Key</th>
                <th scope="col">Here</th>
                <th scope="col">Baseline</th>
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
    </div>
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
          <th scope="col" class="num">
            Seed
          </th>
          <th scope="col" class="num">
            Value
          </th>
          <th scope="col" class="num">
            Step
          </th>
          <th scope="col">Trial</th>
          <th scope="col">Run</th>
          <th scope="col" class="num">
            Attempt
          </th>
          <th scope="col">Worker</th>
          <th scope="col">Host</th>
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
