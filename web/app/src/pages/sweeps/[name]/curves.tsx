// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import { ChartPanel } from "../../../components/chart_panel";
import { Loaded, Notice } from "../../../components/notice";
import { Swatch } from "../../../components/swatch";
import { rowName, sameName, whole } from "../../../format";
import type { GetMetricsResponse, Series, Table, TrialSummary } from "../../../generated/ablate";
import type { Look } from "../../../palette";
import { useResource } from "../../../resource";
import { Link, navigate, useAddress, withQuery } from "../../../router";
import { plotOf, quantitiesOf, quantityOf, type Group, type Line } from "../../../series";

interface Props {
  sweep: string;
  table: Table;
  trials: TrialSummary[];
  looks: Map<string, Look>;
  /** Only this row, run by run. */
  row: string | null;
}

const kMaxPoints = 400;
/** Drawn at once, and what the server answers at once. */
const kMostRuns = 400;
const kServed = 1000;
const kSeedDashes = [[], [8, 4], [2, 3], [12, 4, 2, 4]];

/** Curves of one quantity: where it is measured on both sides, validation and training beside each other with one cursor. */
export function Curves({ sweep, table, trials, looks, row }: Props) {
  const query = useAddress().searchParams;
  const quantities = quantitiesOf(trials.flatMap((trial) => Object.keys(trial.last)));
  const quantity = chosen(query.get("metric"), quantities, table);
  const byRun = row !== null || query.get("by") === "runs";
  const hidden = useMemo(
    () => new Set((query.get("hide") ?? "").split(" ").filter(Boolean)),
    [query.get("hide")],
  );

  const names = quantities.get(quantity ?? "") ?? [];
  const wanted = trials.filter((trial) => trial.run !== 0 && (row === null || trial.row === row));
  const started = wholeRows(wanted, table.baseline);
  const search = new URLSearchParams([
    ...started.map((trial) => ["run", String(trial.run)]),
    ...names.map((name) => ["name", name]),
    ["max_points", String(kMaxPoints)],
  ]);
  const ready = started.length > 0 && names.length > 0;
  const metrics = useResource<GetMetricsResponse>(
    ready ? `/metrics?${search}` : null,
    (c) => c.sweep === sweep,
    `curves ${quantity} ${row}`,
  );

  const drawn = new Set(started.map((trial) => trial.row));
  const rows = table.rows.filter((r) => drawn.has(r.id));
  const plots = useMemo(() => {
    const ofRun = new Map<number, Series[]>();
    for (const { run, series } of metrics.data?.series ?? [])
      ofRun.set(run, [...(ofRun.get(run) ?? []), series]);
    const groups = (name: string): Group[] =>
      rows.flatMap((r) => {
        const of = r.trials.total;
        const runs = started
          .filter((trial) => trial.row === r.id)
          .map((trial, i) => ({
            name: `seed ${trial.seed}`,
            series: (ofRun.get(trial.run) ?? []).find((s) => s.name === name),
            dash: kSeedDashes[i % kSeedDashes.length]!,
          }))
          .flatMap(({ series, ...run }) => (series ? [{ ...run, series }] : []));
        const look = looks.get(r.id)!;
        if (!byRun) return [{ id: r.id, label: rowName(r.id, r.label), look, runs, of }];
        return runs.map((run) => ({
          id: row === null ? r.id : run.name,
          label: `${r.id}, ${run.name}`,
          look: { ...look, dash: run.dash },
          runs: [{ ...run, name: `${r.id}, ${run.name}` }],
        }));
      });
    return names.map((name) => ({ name, plot: plotOf(groups(name).filter((g) => g.runs.length > 0)) }));
  }, [metrics.data, byRun, row, looks]);

  if (quantity === undefined || started.length === 0)
    return (
      <Notice kind="empty" title="No curves yet.">
        They begin with the first points that a run reports.
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
          <span class="switch" role="group" aria-label="A line for each">
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
            ? "One line a run, a dash pattern for each seed."
            : "Mean of a row's seeds, band: ± one standard deviation. Where a seed has diverged or ended, the mean ends and the seeds are drawn one by one, thinner."}{" "}
          {started.length < wanted.length &&
            `The curves of ${whole(started.length)} of ${whole(wanted.length)} runs; choose a row in the table for its own. `}
          No smoothing. Drag to zoom, double-click to reset.
        </span>
      </div>
      <Loaded of={metrics} what="The curves" lines={6}>
        {() => (
          <div class={`curves panel ${plots.length > 1 ? "curves-two" : ""}`}>
            <div class="curves-charts">
              {plots.map(({ name, plot }) => (
                <ChartPanel key={name} title={name} plot={plot} hidden={hidden} sync={`sweep ${sweep}`} />
              ))}
            </div>
            {row === null && (
              <Key
                table={table}
                looks={looks}
                hidden={hidden}
                lines={byRun ? [] : plots.flatMap((p) => p.plot.lines)}
              />
            )}
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

/** The rows' names with their lines; each switches its row off and on. */
function Key({
  table,
  looks,
  hidden,
  lines,
}: {
  table: Table;
  looks: Map<string, Look>;
  hidden: ReadonlySet<string>;
  /** The means that are drawn, to say of how many seeds each is. */
  lines: Line[];
}) {
  const toggle = (id: string): void => {
    const next = new Set(hidden);
    if (!next.delete(id)) next.add(id);
    navigate(withQuery({ hide: next.size ? [...next].join(" ") : null }));
  };
  return (
    <div class="key" role="group" aria-label="Rows shown in the charts">
      {table.rows.map((row) => (
        <button
          type="button"
          key={row.id}
          title={rowName(row.id, row.label)}
          aria-pressed={!hidden.has(row.id)}
          onClick={() => toggle(row.id)}
        >
          <Swatch look={looks.get(row.id)!} />
          {!sameName(row.id, row.label) && <span class="row-id name">{row.id}</span>}
          <span class="key-label">{row.label}</span>
          <SeedCount lines={lines.filter((line) => line.id === row.id)} />
        </button>
      ))}
      {hidden.size > 0 && (
        <Link class="key-all" href={withQuery({ hide: null })}>
          Show all rows
        </Link>
      )}
    </div>
  );
}

/** "n 2/3": of how many seeds a row's mean is, and whether some of them diverged. */
function SeedCount({ lines }: { lines: Line[] }) {
  if (lines.length === 0) return null;
  const runs = Math.max(...lines.map((line) => line.runs));
  const of = Math.max(...lines.map((line) => line.of));
  const diverged = new Set(lines.flatMap((line) => line.breaks.map((lost) => lost.run))).size;
  return (
    <span class="key-count num">
      n {runs < of ? `${runs}/${of}` : runs}
      {diverged > 0 && <span class="bad">, ✕ {diverged} diverged</span>}
    </span>
  );
}

/** The quantity in the address; otherwise that of the table's first metric column. */
function chosen(wanted: string | null, quantities: Map<string, string[]>, table: Table): string | undefined {
  if (wanted !== null && quantities.has(wanted)) return wanted;
  const column = table.columns.find((c) => c.kind === "KIND_METRIC" && quantities.has(quantityOf(c.source)));
  return column ? quantityOf(column.source) : quantities.keys().next().value;
}
