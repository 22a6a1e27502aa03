// SPDX-License-Identifier: Apache-2.0
import { useMemo, useRef } from "preact/hooks";
import { plural, rowName } from "../../../../format";
import { levelOf } from "../table/columns";
import { kLineHeight, useWindow } from "../../../../components/window";
import type { ChartChoice } from "./choice";
import { datum, kWhy, rowsTable, type DataTable } from "./data";
import { ChartFigure, toggleChosen } from "./figure";
import type { Axis, Bounds, Frame, Spread } from "./frame";
import { lit } from "./lit";
import { extentOf, linear, scaleOf, type Scale } from "./scales";
import { percent, Ticks } from "./ticks";

interface Props {
  frame: Frame;
  of: Axis;
  choice: ChartChoice;
  /** Places of the rows that the table shows, in its order. */
  shown: readonly number[];
}

/** A bar for each row of the table, in its order: the mean and its interval, the baseline's as a line, the paper's number as a mark. */
export function Bars({ frame, of, choice, shown }: Props) {
  const values = frame.values(of);
  const bounds = frame.bounds(of, choice.spread);
  const view = useMemo(() => {
    const pick = (all: Float64Array): Float64Array => Float64Array.from(shown, (row) => all[row]!);
    const papers = pick(frame.papers(of));
    const bases = pick(frame.bases(of));
    const own = [values, bounds.low, bounds.high].map(pick);
    const extent = extentOf([...own, papers, bases]);
    return { papers, bases, extent, own: own[0]! };
  }, [frame, of, choice.spread, shown]);
  if (!view.extent) {
    const notes = [whyNone(frame, of, shown)];
    return (
      <ChartFigure
        title={of.title}
        notes={notes}
        asTable={false}
        data={() => tableOf(frame, of, choice.spread, shown)}
      >
        <p class="charts-none">No row here has a value to draw.</p>
      </ChartFigure>
    );
  }
  const { low, high } = view.extent;
  const scale = choice.zero ? fromZero(low, high) : scaleOf(low, high);
  const start = (i: number): number | undefined =>
    choice.zero ? 0 : Number.isNaN(view.bases[i]!) ? undefined : view.bases[i];
  const hasBase = view.bases.some((value) => !Number.isNaN(value));
  const hasPaper = view.papers.some((value) => !Number.isNaN(value));
  const none = view.own.filter((value) => Number.isNaN(value)).length;
  const single = shown.filter(
    (row, i) => !Number.isNaN(view.own[i]!) && Number.isNaN(bounds.low[row]!),
  ).length;
  const notes = [
    choice.zero
      ? "Bars begin at 0."
      : hasBase
        ? "Bars begin at the baseline: their length is the difference from it. The axis does not begin at 0."
        : `${shown.some((row) => frame.isBaseline(row)) ? "The baseline has no value" : "There is no baseline"}: dots, not bars, since the axis does not begin at 0.`,
    choice.spread !== "none" && `Interval: ${spreadText(frame, choice.spread)}.`,
    choice.spread !== "none" && single > 0 && `${plural(single, "row")} without an interval: too few values.`,
    hasBase && "Dashed line: the baseline.",
    hasPaper && `◆ ${frame.table.paper_heading || "the paper"}.`,
    none > 0 && `${none} of ${plural(shown.length, "row")} without a value.`,
  ];
  return (
    <ChartFigure
      title={of.title}
      notes={notes}
      asTable={choice.asTable}
      data={() => tableOf(frame, of, choice.spread, shown)}
    >
      <BarRows
        {...{ frame, of, choice, shown, scale, start, bounds }}
        bases={view.bases}
        papers={view.papers}
      />
    </ChartFigure>
  );
}

interface RowsProps extends Props {
  scale: Scale;
  start: (i: number) => number | undefined;
  bounds: Bounds;
  bases: Float64Array;
  papers: Float64Array;
}

/** Of many rows those in sight. */
function BarRows({ frame, of, choice, shown, scale, start, bounds, bases, papers }: RowsProps) {
  const box = useRef<HTMLDivElement>(null);
  const { from, to } = useWindow(box, shown.length);
  const isLong = to - from < shown.length;
  return (
    <div
      class="scroll tall bars-box"
      ref={box}
      tabIndex={0}
      role="region"
      aria-label={`Bars of ${of.title}, a row each`}
      onPointerLeave={() => lit.set([])}
    >
      <table
        class={`bars wide ${isLong ? "dense" : ""}`}
        aria-rowcount={isLong ? shown.length + 1 : undefined}
      >
        <caption class="sr-only">
          {of.title}: {plural(shown.length, "row")} as in the ablation table. A row's button chooses it.
        </caption>
        <thead>
          <tr>
            <th scope="col">Row</th>
            <th scope="col" class="bars-axis">
              <Ticks scale={scale} title={of.title} />
            </th>
            <th scope="col" class="num">
              <span class="sr-only">Value</span>
            </th>
          </tr>
        </thead>
        <tbody>
          <Gap lines={from} />
          {shown.slice(from, to).map((row, i) => (
            <Bar
              key={frame.rows[row]!.id}
              frame={frame}
              of={of}
              row={row}
              index={isLong ? from + i + 2 : undefined}
              scale={scale}
              start={start(from + i)}
              base={bases[from + i]!}
              paper={papers[from + i]!}
              low={bounds.low[row]!}
              high={bounds.high[row]!}
              chosen={choice.chosen}
            />
          ))}
          <Gap lines={shown.length - to} />
        </tbody>
      </table>
    </div>
  );
}

function fromZero(low: number, high: number): Scale {
  const [from, to] = [Math.min(0, low), Math.max(0, high)];
  const room = (to - from) * 0.04 || 0.5;
  return linear(from < 0 ? from - room : 0, to > 0 ? to + room : 0);
}

export function spreadText(frame: Frame, spread: Spread): string {
  const kinds = {
    sd: "± one standard deviation over the seeds",
    se: "± 1 standard error",
    ci: `${levelOf(frame.table)} interval of the mean (${frame.table.compare?.interval || "t"})`,
    none: "none",
  };
  return kinds[spread];
}

interface BarProps {
  frame: Frame;
  of: Axis;
  row: number;
  index: number | undefined;
  scale: Scale;
  /** Where the bar begins; undefined: it is a dot. */
  start: number | undefined;
  base: number;
  paper: number;
  low: number;
  high: number;
  chosen: ReadonlySet<string>;
}

function Bar({ frame, of, row, index, scale, start, base, paper, low, high, chosen }: BarProps) {
  const { id, label, cells } = frame.rows[row]!;
  const value = frame.values(of)[row]!;
  const at = (number: number): string => percent(scale.at(number));
  const isBaseline = frame.isBaseline(row);
  const isChosen = chosen.has(id);
  const cell = cells[of.place];
  const why = frame.whyNot(of, row);
  const [mean, sd] = frame.cellText(of, row).split(" ± ");
  const [from, to] = start === undefined ? [value, value] : [Math.min(start, value), Math.max(start, value)];
  return (
    <tr
      class={`${isBaseline ? "is-baseline" : ""} ${isChosen ? "chosen" : ""}`}
      aria-rowindex={index}
      onPointerEnter={() => lit.set([id])}
    >
      <th scope="row">
        <button
          type="button"
          class="bars-name"
          aria-pressed={isChosen}
          title={rowName(id, label)}
          onClick={() => toggleChosen(chosen, id)}
          onFocus={() => lit.set([id])}
          onBlur={() => lit.set([])}
        >
          <bdi>{label}</bdi>
        </button>
      </th>
      <td class="bars-plot">
        <svg width="100%" height="100%" aria-hidden="true">
          {scale.ticks.map((mark) => (
            <line key={mark} x1={at(mark)} x2={at(mark)} y1="0" y2="100%" class="bars-grid" />
          ))}
          {!Number.isNaN(base) && <line x1={at(base)} x2={at(base)} y1="0" y2="100%" class="bars-base" />}
          {!Number.isNaN(value) && (
            <svg y="50%" overflow="visible">
              {start !== undefined && (
                <rect
                  x={at(from)}
                  y="-7"
                  width={percent(Math.max(0, scale.at(to) - scale.at(from)))}
                  height="14"
                  class="bars-bar"
                />
              )}
              {!Number.isNaN(low) && (
                <>
                  <line x1={at(low)} x2={at(high)} y1="0" y2="0" class="bars-interval" />
                  <line x1={at(low)} x2={at(low)} y1="-5" y2="5" class="bars-interval" />
                  <line x1={at(high)} x2={at(high)} y1="-5" y2="5" class="bars-interval" />
                </>
              )}
              <circle cx={at(value)} cy="0" r="3.5" class="bars-dot" />
            </svg>
          )}
          {!Number.isNaN(paper) && (
            <svg x={at(paper)} y="50%" overflow="visible">
              <path d="M0 -5.5 L5 0 L0 5.5 L-5 0 Z" class="bars-paper" />
            </svg>
          )}
        </svg>
      </td>
      <td class={`num bars-value ${why ? "bars-none" : ""}`}>
        {why ? (
          <span class={frame.isBroken(of, row) ? "bad" : "muted"} title={why}>
            {why}
          </span>
        ) : (
          <>
            {mean}
            {sd && <span class="wide-only"> ± {sd}</span>}
            {cell && cell.n > 0 && of.kind === "metric" && (
              <span class="muted wide-only">
                {" "}
                n&nbsp;{cell.n < cell.of ? `${cell.n}/${cell.of}` : cell.n}
              </span>
            )}
          </>
        )}
      </td>
    </tr>
  );
}

/** Lines that are not drawn, as high as they would be. */
function Gap({ lines }: { lines: number }) {
  if (lines <= 0) return null;
  return (
    <tr class="gap" aria-hidden="true">
      <td colSpan={3} style={{ height: `${lines * kLineHeight}px` }} />
    </tr>
  );
}

function whyNone(frame: Frame, of: Axis, shown: readonly number[]): string {
  if (shown.length === 0) return "The table shows no row.";
  const broken = shown.filter((row) => frame.isBroken(of, row)).length;
  return broken > 0
    ? `${broken} of ${plural(shown.length, "row")} diverged or gave NaN${broken < shown.length ? ", the others have no value yet" : ""}.`
    : `None of ${plural(shown.length, "row")} has a value of ${of.title} yet.`;
}

function tableOf(frame: Frame, of: Axis, spread: Spread, shown: readonly number[]): DataTable {
  const { low, high } = frame.bounds(of, spread);
  const { head, rows } = rowsTable(frame, [of], shown);
  const place = head.at(-1) === kWhy ? -1 : head.length;
  const put = <T,>(line: T[], more: T[]): T[] => [...line.slice(0, place), ...more, ...line.slice(place)];
  return {
    head: put(head, ["low", "high", "n", "baseline", "paper"]),
    rows: rows.map((line, i) => {
      const row = shown[i]!;
      const cell = frame.rows[row]!.cells[of.place];
      const paper = datum(frame, of, frame.papers(of)[row]);
      return put(line, [
        datum(frame, of, low[row]),
        datum(frame, of, high[row]),
        String(cell?.n ?? ""),
        datum(frame, of, frame.bases(of)[row]),
        [paper[0], cell?.paper ?? ""],
      ]);
    }),
  };
}
