// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { Menu } from "../../../../components/menu";
import { ErrorNotice, Loaded, Notice } from "../../../../components/notice";
import { plural, whole } from "../../../../format";
import type { Table } from "../../../../generated/ablate";
import { useLate } from "../../../../late";
import { Link, navigate, useAddress, withQuery } from "../../../../router";
import { chosenRows, type Choice } from "../table/choice";
import { levelOf } from "../table/columns";
import type { KnownRows } from "../table/rows";
import { Bars } from "./bars";
import { withBrush, type Brush } from "./brush";
import { BrushChip, type Brushed } from "./brush_chip";
import { chartChoice, kCharts, type ChartChoice, type ChartKind } from "./choice";
import { ChosenBar } from "./figure";
import type { Axis, Frame } from "./frame";
import { HeatMap } from "./heat_map";
import { lit } from "./lit";
import type { EffectsProps } from "./main_effects";
import { ParallelAxes } from "./parallel_axes";
import { Scatter } from "./scatter";

interface Props {
  table: Table;
  known: KnownRows;
  /** All rows by columns; undefined: not all of them were read. */
  frame: Frame | undefined;
  /** What the table shows. */
  choice: Choice;
  brushes: readonly Brush[];
  brushed: Brushed | undefined;
}

/** Charts of the whole table. The address keeps which, and of what. */
export function Charts({ table, known, frame, choice, brushes, brushed }: Props) {
  const { search, searchParams: query } = useAddress();
  useEffect(() => () => lit.set([]), []);
  const view = useMemo(() => frame && chartChoice(query, frame), [search, frame]);
  const kind = view?.kind;
  useEffect(() => lit.set([]), [kind]);
  if (table.search || known.total === 0)
    return (
      <Notice kind="empty" title="No charts yet.">
        They appear with the first row of the table.
      </Notice>
    );
  if (!frame || !view)
    return (
      <>
        {known.error && <ErrorNotice error={known.error} what="A part of the table" />}
        {query.has("chart") || brushes.length > 0 ? (
          <p role="status" class="muted">
            Reading rows: {whole(known.read)} of {whole(known.total)}
          </p>
        ) : (
          <Notice kind="empty" title={`Charts are drawn of all ${plural(known.total, "row")}.`}>
            <p>The table reads its rows as you scroll.</p>
            <Link class="button" href={withQuery({ chart: "bars" })}>
              Read all rows and draw them
            </Link>
          </Notice>
        )}
      </>
    );
  return (
    <>
      <div class="controls">
        <nav class="switch charts-kinds" aria-label="Charts">
          {(Object.keys(kCharts) as ChartKind[]).map((one) => (
            <Link
              key={one}
              href={withQuery({ chart: one })}
              {...(one === view.kind ? { "aria-current": "true" as const } : {})}
            >
              {kCharts[one]}
            </Link>
          ))}
        </nav>
        <Controls frame={frame} view={view} />
        <BrushChip frame={frame} brushes={brushes} brushed={brushed} total={known.total} />
        <ChosenBar
          chosen={view.chosen}
          brush={withBrush(brushes, "", { kind: "rows", ids: [...view.chosen] })}
        />
      </div>
      <div class="panel charts">
        <Chart frame={frame} view={view} table={table} choice={choice} brushes={brushes} brushed={brushed} />
      </div>
    </>
  );
}

interface ChartProps {
  frame: Frame;
  view: ChartChoice;
  table: Table;
  choice: Choice;
  brushes: readonly Brush[];
  brushed: Brushed | undefined;
}

function Chart({ frame, view, table, choice, brushes, brushed }: ChartProps) {
  const { kind, of, x, y, across, down } = view;
  const shown = useMemo(
    () =>
      kind === "bars" ? chosenRows(table, frame.rows, choice).map(({ id }) => frame.places.get(id)!) : [],
    [kind, frame, choice],
  );
  if (kind === "scatter") {
    if (!x || !y || frame.numbers.length < 2)
      return (
        <Needs>
          A scatter needs two columns with numbers: metrics, counts, or settings that are numbers.
        </Needs>
      );
    return <Scatter frame={frame} x={x} y={y} choice={view} brushes={brushes} brushed={brushed} />;
  }
  if (kind === "parallel") {
    if (view.axes.length < 2) return <Needs>Parallel axes need two columns or settings.</Needs>;
    return (
      <ParallelAxes
        frame={frame}
        of={of}
        axes={view.axes}
        choice={view}
        brushes={brushes}
        brushed={brushed}
      />
    );
  }
  if (!of) return <Needs>The table has no metric to draw.</Needs>;
  if (kind === "heat") {
    if (!across || !down || across === down)
      return (
        <Needs>
          A heat map needs two settings in which rows differ; the table knows {whole(frame.settings.length)}.
          Settings are factors, or columns with <code>setting:</code>.
        </Needs>
      );
    return <HeatMap frame={frame} of={of} across={across} down={down} choice={view} brushes={brushes} />;
  }
  if (kind === "effects") return <Effects frame={frame} of={of} choice={view} brushes={brushes} />;
  return <Bars frame={frame} of={of} choice={view} shown={shown} />;
}

const effects = () => import("./main_effects");

function Effects(props: EffectsProps) {
  return (
    <Loaded of={useLate(effects)} what="The chart" lines={6}>
      {(MainEffects) => <MainEffects {...props} />}
    </Loaded>
  );
}

function Needs({ children }: { children: ComponentChildren }) {
  return (
    <Notice kind="empty" title="There is nothing to draw.">
      {children}
    </Notice>
  );
}

/** What the chart is of, and how it is drawn. */
function Controls({ frame, view }: { frame: Frame; view: ChartChoice }) {
  const { kind } = view;
  const metric = (
    <Choose
      label={{ bars: "Metric", scatter: "", heat: "Colour", parallel: "Colour", effects: "Metric" }[kind]}
      name="chart-of"
      axes={frame.metrics}
      value={view.of}
    />
  );
  const logs = (x: boolean, y: boolean): string | null =>
    [x && "x", y && "y"].filter(Boolean).join(",") || null;
  return (
    <>
      {kind === "scatter" && (
        <>
          <Choose label="X" name="chart-x" axes={frame.numbers} value={view.x} />
          <Check label="log x" on={view.logX} changes={{ "chart-log": logs(!view.logX, view.logY) }} />
          <Choose label="Y" name="chart-y" axes={frame.numbers} value={view.y} />
          <Check label="log y" on={view.logY} changes={{ "chart-log": logs(view.logX, !view.logY) }} />
        </>
      )}
      {kind !== "scatter" && metric}
      {(kind === "bars" || kind === "scatter") && (
        <label>
          Interval
          <select
            value={view.spread}
            onChange={({ currentTarget: { value } }) =>
              navigate(withQuery({ "chart-spread": value === "sd" ? null : value }))
            }
          >
            <option value="sd">± s.d.</option>
            <option value="se">± s.e.</option>
            <option value="ci">{levelOf(frame.table)}</option>
            <option value="none">none</option>
          </select>
        </label>
      )}
      {kind === "bars" && (
        <Check label="From 0" on={view.zero} changes={{ "chart-zero": view.zero ? null : "1" }} />
      )}
      {kind === "heat" && (
        <>
          <Choose label="Across" name="chart-across" axes={frame.settings} value={view.across} />
          <Choose label="Down" name="chart-down" axes={frame.settings} value={view.down} />
          <Check
            label="Average over other settings"
            on={view.average}
            changes={{ "chart-mean": view.average ? "0" : null }}
          />
        </>
      )}
      {kind === "parallel" && <AxesMenu frame={frame} axes={view.axes} />}
    </>
  );
}

function Choose(props: { label: string; name: string; axes: readonly Axis[]; value: Axis | undefined }) {
  if (props.axes.length === 0) return null;
  return (
    <label>
      {props.label}
      <select
        class="charts-select"
        value={props.value?.key ?? ""}
        onChange={({ currentTarget: { value } }) => navigate(withQuery({ [props.name]: value }))}
      >
        {props.axes.map(({ key, title }) => (
          <option key={key} value={key}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}

function Check(props: { label: string; on: boolean; changes: Record<string, string | null> }) {
  return (
    <label class="check">
      <input type="checkbox" checked={props.on} onChange={() => navigate(withQuery(props.changes))} />
      {props.label}
    </label>
  );
}

/** Which axes, in which order: one that is ticked comes last. */
function AxesMenu({ frame, axes }: { frame: Frame; axes: readonly Axis[] }) {
  const flip = (axis: Axis): string[] => {
    const keys = axes.map(({ key }) => key);
    return keys.includes(axis.key) ? keys.filter((key) => key !== axis.key) : [...keys, axis.key];
  };
  return (
    <Menu title={`Axes (${axes.length})`}>
      {() => (
        <fieldset>
          <legend>Axes; one that is ticked comes last</legend>
          {frame.axes.map((axis) => (
            <label key={axis.key}>
              <input
                type="checkbox"
                checked={axes.includes(axis)}
                disabled={axes.includes(axis) && axes.length <= 2}
                onChange={() => navigate(withQuery({ "chart-axes": flip(axis) }))}
              />
              <bdi class="name" title={axis.title}>
                {axis.title}
              </bdi>
            </label>
          ))}
        </fieldset>
      )}
    </Menu>
  );
}
