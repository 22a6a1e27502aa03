// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import { ChartPanel } from "../../components/chart_panel";
import { Loaded, Notice } from "../../components/notice";
import { Swatch } from "../../components/swatch";
import type { Look } from "../../palette";
import { useResource } from "../../resource";
import { Link, navigate, useAddress, withQuery } from "../../router";
import { plotOf, quantitiesOf, quantityOf, type Group, type Metrics, type RunSeries } from "../../series";
import type { Table, TrialSummary } from "./data";

interface Props {
  sweep: string;
  table: Table;
  trials: TrialSummary[];
  looks: Map<string, Look>;
  /** Only this row, run by run. */
  row: string | null;
}

const kMaxPoints = 400;
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
  const started = trials.filter((trial) => trial.run !== 0 && (row === null || trial.row === row));
  const search = new URLSearchParams([
    ...started.map((trial) => ["run", String(trial.run)]),
    ...names.map((name) => ["name", name]),
    ["max_points", String(kMaxPoints)],
  ]);
  const ready = started.length > 0 && names.length > 0;
  const metrics = useResource<Metrics>(
    ready ? `/metrics?${search}` : null,
    (c) => c.sweep === sweep,
    `curves ${quantity} ${row}`,
  );

  const rows = table.rows.filter((r) => row === null || r.id === row);
  const plots = useMemo(() => {
    const ofRun = new Map<number, RunSeries["series"][]>();
    for (const { run, series } of metrics.data?.series ?? [])
      ofRun.set(run, [...(ofRun.get(run) ?? []), series]);
    const groups = (name: string): Group[] =>
      rows.flatMap((r) => {
        const runs = started.filter((trial) => trial.row === r.id);
        const series = runs.map((trial) => (ofRun.get(trial.run) ?? []).find((s) => s.name === name));
        const look = looks.get(r.id)!;
        if (!byRun)
          return [
            { id: r.id, label: `${r.id} ${r.label}`, look, series: series.filter((s) => s !== undefined) },
          ];
        return runs.map((trial, i) => ({
          id: row === null ? r.id : `seed ${trial.seed}`,
          label: `${r.id}, seed ${trial.seed}`,
          look: { ...look, dash: kSeedDashes[i % kSeedDashes.length]! },
          series: series[i] ? [series[i]] : [],
        }));
      });
    return names.map((name) => ({ name, plot: plotOf(groups(name).filter((g) => g.series.length > 0)) }));
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
            : "Band: ± one standard deviation over seeds."}{" "}
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
            {row === null && <Key table={table} looks={looks} hidden={hidden} />}
          </div>
        )}
      </Loaded>
    </>
  );
}

/** The rows' names with their lines; each switches its row off and on. */
function Key({
  table,
  looks,
  hidden,
}: {
  table: Table;
  looks: Map<string, Look>;
  hidden: ReadonlySet<string>;
}) {
  const toggle = (id: string): void => {
    const next = new Set(hidden);
    if (!next.delete(id)) next.add(id);
    navigate(withQuery({ hide: next.size ? [...next].join(" ") : null }));
  };
  return (
    <div class="key" role="group" aria-label="Rows shown in the charts">
      {table.rows.map((row) => (
        <button type="button" key={row.id} aria-pressed={!hidden.has(row.id)} onClick={() => toggle(row.id)}>
          <Swatch look={looks.get(row.id)!} />
          <span class="row-id">{row.id}</span>
          <span class="key-label">{row.label}</span>
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

/** The quantity in the address; otherwise that of the table's first metric column. */
function chosen(wanted: string | null, quantities: Map<string, string[]>, table: Table): string | undefined {
  if (wanted !== null && quantities.has(wanted)) return wanted;
  const column = table.columns.find((c) => c.kind === "KIND_METRIC" && quantities.has(quantityOf(c.source)));
  return column ? quantityOf(column.source) : quantities.keys().next().value;
}
