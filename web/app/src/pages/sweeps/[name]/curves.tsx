// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import { ChartPanel } from "../../../components/chart_panel";
import { CurveControls, zoomTo } from "../../../components/curve_controls";
import { CurveState } from "../../../components/curve_state";
import { Loaded, Notice } from "../../../components/notice";
import { groupRun, useSeen } from "../../../curves/seen";
import { kSpreads } from "../../../curves/spread";
import { viewOf, viewText } from "../../../curves/view";
import { rowName, whole } from "../../../format";
import type { Table, TrialSummary } from "../../../generated/ablate";
import type { Look } from "../../../palette";
import { Link, navigate, useAddress, withQuery } from "../../../router";
import { extentOf, kTold, plotOf, quantitiesOf, quantityOf, withRoles, type Group } from "../../../series";
import { Key } from "./curve_key";

interface Props {
  sweep: string;
  table: Table;
  trials: TrialSummary[];
  looks: Map<string, Look>;
  /** Only this row, run by run. */
  row: string | null;
}

/** Runs that are drawn at most, and runs that the server answers at once. */
const kMostRuns = 600;
const kServed = 1000;
const kSeedDashes = [[], [8, 4], [2, 3], [12, 4, 2, 4]];

/** Curves of one quantity: where it is measured on both sides, validation and training beside each other with one cursor. */
export function Curves({ sweep, table, trials, looks, row }: Props) {
  const query = useAddress().searchParams;
  const view = useMemo(() => viewOf(query), [viewText(query)]);
  const quantities = quantitiesOf(trials.flatMap((trial) => Object.keys(trial.last)));
  const quantity = chosen(query.get("metric"), quantities, table);
  const byRun = row !== null || query.get("by") === "runs";
  const hidden = useMemo(() => idsOf(query.get("hide")), [query.get("hide")]);
  const picked = useMemo(() => idsOf(query.get("pick")), [query.get("pick")]);
  const find = row === null ? (query.get("rows") ?? "") : "";

  const names = quantities.get(quantity ?? "") ?? [];
  const wanted = trials.filter((trial) => trial.run !== 0 && (row === null || trial.row === row));
  const started = wholeRows(wanted, table.baseline);
  const seen = useSeen(
    started.map((trial) => trial.run),
    names.length > 0 ? names : null,
    view,
    (change) => change.sweep === sweep,
  );
  const set = seen.resource.data;

  const drawn = new Set(started.map((trial) => trial.row));
  const rows = table.rows.filter((r) => drawn.has(r.id) && isFound(r, find));
  const plots = useMemo(() => {
    const groups = (name: string): Group[] =>
      rows.flatMap((r) => {
        const of = r.trials.total;
        const runs = started
          .filter((trial) => trial.row === r.id)
          .flatMap((trial, i) => {
            const run = set && groupRun(set, trial.run, name, `seed ${trial.seed}`, view);
            return run ? [{ ...run, dash: kSeedDashes[i % kSeedDashes.length]! }] : [];
          });
        const look = looks.get(r.id)!;
        if (!byRun) return [{ id: r.id, label: rowName(r.id, r.label), look, runs, of }];
        return runs.map((run) => ({
          id: row === null ? r.id : run.name,
          label: `${r.id}, ${run.name}`,
          look: { ...look, dash: run.dash },
          runs: [{ ...run, name: `${r.id}, ${run.name}` }],
        }));
      });
    return names.map((name) => {
      const plot = plotOf(
        groups(name).filter((g) => g.runs.length > 0),
        view,
      );
      return { name, plot: withRoles(plot, picked) };
    });
  }, [set, byRun, row, looks, view, find, picked]);

  // hundreds of names: not drawn anew with every other part of the address
  const key = useMemo(
    () =>
      row === null && (
        <Key
          rows={table.rows.filter((r) => isFound(r, find))}
          of={table.rows.length}
          find={find}
          looks={looks}
          hidden={hidden}
          picked={picked}
          canPick={plots.some(({ plot }) => plot.lines.length > kTold)}
          lines={byRun ? [] : plots.flatMap((p) => p.plot.lines)}
        />
      ),
    [table, find, looks, hidden, picked, plots, byRun, row],
  );

  if (quantity === undefined || started.length === 0)
    return (
      <Notice kind="empty" title="No curves yet.">
        They appear with the first points that a run reports.
      </Notice>
    );
  return (
    <>
      <div class="controls">
        <label>
          Metric
          <select
            value={quantity}
            onChange={(event) => navigate(withQuery({ metric: event.currentTarget.value }))}
          >
            {[...quantities].map(([name, metricNames]) => (
              <option key={name} value={name}>
                {name} ({metricNames.map((m) => m.split("/")[0]).join(", ")})
              </option>
            ))}
          </select>
        </label>
        {row === null && (
          <span class="switch" role="group" aria-label="Lines">
            <Link href={withQuery({ by: null })} {...(byRun ? {} : { "aria-current": "true" as const })}>
              Mean of each row
            </Link>
            <Link href={withQuery({ by: "runs" })} {...(byRun ? { "aria-current": "true" as const } : {})}>
              Every run
            </Link>
          </span>
        )}
        <span class="muted">
          {byRun
            ? "One line per run, one dash pattern per seed."
            : `Mean over each row's seeds, band: ${kSpreads[view.spread]}. Where a seed has diverged or ended, the mean ends and each seed is a thin line.`}{" "}
          {started.length < wanted.length &&
            `${whole(started.length)} of ${whole(wanted.length)} runs are drawn; select a row in the table to see its runs. `}
          {plots.some(({ plot }) => plot.lines.length > kTold) &&
            "The lines that end highest and lowest, the baseline and starred rows are strong; the others are faint."}
        </span>
      </div>
      <CurveControls
        view={view}
        runs={[...(set?.runs.values() ?? [])]}
        all={extentOf(plots.flatMap(({ plot }) => plot.lines))}
        means={!byRun}
      />
      <CurveState seen={seen} />
      <Loaded of={seen.resource} what="The curves" lines={6}>
        {() => (
          <div class={`curves panel ${plots.length > 1 ? "curves-two" : ""}`}>
            <div class="curves-charts">
              {plots.map(({ name, plot }) => (
                <ChartPanel
                  key={name}
                  title={name}
                  plot={plot}
                  hidden={hidden}
                  sync={`sweep ${sweep}`}
                  scales={view}
                  onZoom={zoomTo}
                />
              ))}
            </div>
            {key}
          </div>
        )}
      </Loaded>
    </>
  );
}

/** As many runs as are drawn at once, the baseline's first: a row has all of its runs or none, for its mean is of them all. */
function wholeRows(trials: TrialSummary[], baseline: string): TrialSummary[] {
  if (trials.length <= kMostRuns) return trials;
  const rows = new Map<string, TrialSummary[]>();
  for (const trial of trials) rows.set(trial.row, [...(rows.get(trial.row) ?? []), trial]);
  const ordered = [...rows].sort(([a], [b]) => Number(b === baseline) - Number(a === baseline));
  const taken: TrialSummary[] = [];
  for (const [, runs] of ordered)
    if (taken.length === 0 || taken.length + runs.length <= kMostRuns) taken.push(...runs.slice(0, kServed));
  return taken;
}

/** Ids of rows, which have no spaces, as the address holds them. */
function idsOf(text: string | null): ReadonlySet<string> {
  return new Set((text ?? "").split(" ").filter(Boolean));
}

function isFound({ id, label }: { id: string; label: string }, find: string): boolean {
  const text = `${id} ${label}`.toLowerCase();
  return find
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/** The quantity in the address; otherwise that of the table's first metric column. */
function chosen(wanted: string | null, quantities: Map<string, string[]>, table: Table): string | undefined {
  if (wanted !== null && quantities.has(wanted)) return wanted;
  const column = table.columns.find((c) => c.kind === "KIND_METRIC" && quantities.has(quantityOf(c.source)));
  return column ? quantityOf(column.source) : quantities.keys().next().value;
}
