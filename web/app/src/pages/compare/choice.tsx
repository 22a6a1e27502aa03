// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import { Loaded, Notice } from "../../components/notice";
import { State } from "../../components/state";
import { TablePanel } from "../../components/table_panel";
import { plural, rowName, whole } from "../../format";
import type { ListRunsResponse, ListSweepsResponse, RunDetail, Table } from "../../generated/ablate";
import { useResource } from "../../resource";
import { Link, navigate, withQuery } from "../../router";

/** Both sides, named as on the command line. */
export function SidesForm({ a, b }: { a: string; b: string }) {
  const [sides, setSides] = useState({ a, b });
  useEffect(() => setSides({ a, b }), [a, b]);
  const go = (next: { a: string; b: string }): void =>
    navigate(withQuery({ a: next.a.trim() || null, b: next.b.trim() || null, first: null, metric: null }));
  return (
    <form
      class="controls"
      onSubmit={(event) => {
        event.preventDefault();
        go(sides);
      }}
    >
      {(["a", "b"] as const).map((side) => (
        <label key={side}>
          {side.toUpperCase()}
          <input
            type="search"
            value={sides[side]}
            placeholder="SWEEP, SWEEP/ROW or a run's number"
            spellcheck={false}
            size={30}
            onInput={(event) => setSides({ ...sides, [side]: event.currentTarget.value })}
          />
        </label>
      ))}
      <button>Compare</button>
      {a && b && (
        <button type="button" onClick={() => go({ a: b, b: a })}>
          Swap A and B
        </button>
      )}
    </form>
  );
}

/** What the chosen side can be compared with: sweeps, rows of the same sweep, or other runs of its sweep. */
export function Choice({ chosen, side }: { chosen: string; side: "a" | "b" }) {
  const [sweep, row] = [chosen.split("/")[0]!, chosen.includes("/")];
  if (/^\d+$/.test(chosen)) return <RunChoice run={Number(chosen)} side={side} />;
  return row ? (
    <RowChoice sweep={sweep} chosen={chosen} side={side} />
  ) : (
    <SweepChoice chosen={chosen} side={side} />
  );
}

const kMost = 200;

/** A link that fills the other side. */
function Pick({ name, side, children }: { name: string; side: "a" | "b"; children: string }) {
  return (
    <Link class="strong" href={withQuery({ [side]: name })} title={children}>
      <span class="name">{children}</span>
    </Link>
  );
}

function SweepChoice({ chosen, side }: { chosen: string; side: "a" | "b" }) {
  const sweeps = useResource<ListSweepsResponse>(`/sweeps?count=${kMost}`, () => true);
  return (
    <section aria-labelledby="choice">
      <h2 id="choice">{chosen ? `Compare ${chosen} with` : "Choose a sweep"}</h2>
      <Loaded of={sweeps} what="Sweeps">
        {({ sweeps: list, left_out }) => {
          const others = list.filter((each) => each.name !== chosen);
          return others.length === 0 ? (
            <Notice kind="empty" title="No other sweeps." />
          ) : (
            <>
              <TablePanel caption="Sweeps to choose from, newest first">
                {others.map((each) => (
                  <tr key={each.name}>
                    <th scope="row">
                      <Pick name={each.name} side={side}>
                        {each.name}
                      </Pick>
                    </th>
                    <td>
                      <State state={each.state} />
                    </td>
                    <td class="num">{plural(each.rows, "row")}</td>
                  </tr>
                ))}
              </TablePanel>
              {left_out > 0 && <p class="muted">and {plural(left_out, "older sweep")}: enter a name above</p>}
            </>
          );
        }}
      </Loaded>
    </section>
  );
}

function RowChoice({ sweep, chosen, side }: { sweep: string; chosen: string; side: "a" | "b" }) {
  const table = useResource<Table>(
    `/sweeps/${encodeURIComponent(sweep)}/table?count=${kMost}&long_form=1`,
    (change) => change.sweep === sweep,
  );
  return (
    <section aria-labelledby="choice">
      <h2 id="choice">Compare {chosen} with</h2>
      <Loaded of={table} what="Rows">
        {({ rows, left_out }) => (
          <>
            <TablePanel caption="Rows of the same sweep">
              {rows
                .filter((row) => `${sweep}/${row.id}` !== chosen && !row.not_trained)
                .map((row) => (
                  <tr key={row.id}>
                    <th scope="row">
                      <Pick name={`${sweep}/${row.id}`} side={side}>
                        {rowName(row.id, row.label)}
                      </Pick>
                    </th>
                    <td class="num">
                      {whole(row.trials.completed)} of {plural(row.trials.total, "trial")} completed
                    </td>
                  </tr>
                ))}
            </TablePanel>
            {left_out > 0 && <p class="muted">and {plural(left_out, "more row")}: enter a name above</p>}
          </>
        )}
      </Loaded>
    </section>
  );
}

function RunChoice({ run, side }: { run: number; side: "a" | "b" }) {
  const detail = useResource<RunDetail>(`/runs/${run}`, (change) => change.run === run);
  const sweep = detail.data?.summary.rows[0]?.sweep;
  const runs = useResource<ListRunsResponse>(
    detail.data ? `/runs?limit=${kMost}${sweep ? `&sweep=${encodeURIComponent(sweep)}` : ""}` : null,
    () => true,
  );
  return (
    <section aria-labelledby="choice">
      <h2 id="choice">
        Compare run {run} with {sweep ? `another of ${sweep}` : "another run"}
      </h2>
      <Loaded of={detail.error ? { error: detail.error } : runs} what="Runs">
        {({ runs: list, left_out }) => {
          const others = list.filter((each) => each.id !== run);
          return others.length === 0 ? (
            <Notice kind="empty" title="No other runs." />
          ) : (
            <>
              <TablePanel caption="Runs to choose from, newest first">
                {others.map((each) => {
                  const place = each.rows.find((other) => other.sweep === sweep) ?? each.rows[0];
                  const name = place ? `, ${rowName(place.row, place.label)}, seed ${place.seed}` : "";
                  return (
                    <tr key={each.id}>
                      <th scope="row">
                        <Pick name={String(each.id)} side={side}>{`run ${each.id}${name}`}</Pick>
                      </th>
                      <td>
                        <State state={each.state} />
                      </td>
                    </tr>
                  );
                })}
              </TablePanel>
              {left_out > 0 && <p class="muted">and older runs: enter a number above</p>}
            </>
          );
        }}
      </Loaded>
    </section>
  );
}
