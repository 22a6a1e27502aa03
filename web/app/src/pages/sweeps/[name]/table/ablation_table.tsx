// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { Swatch } from "../../../../components/swatch";
import { Gap, kLineHeight, kMostDrawn, useWindow } from "../../../../components/window";
import { plural, sameName } from "../../../../format";
import type { Table, TableRow, TrialSummary } from "../../../../generated/ablate";
import type { Look } from "../../../../palette";
import { Link, navigate, withQuery } from "../../../../router";
import { useLit } from "../charts/lit";
import { Analyses } from "./analyses";
import { Cells } from "./cells";
import type { Choice, Line } from "./choice";
import { compares, levelsOf, type Parts } from "./columns";
import { Head, type RunsShown } from "./head";
import { RunCounts, rowsOf, Runs } from "./runs";

interface Props {
  /** Columns, notes and comparison settings of the whole table. */
  table: Table;
  lines: Line[];
  choice: Choice;
  /** Rows that were read, by id: others are compared with them. */
  rows: ReadonlyMap<string, TableRow>;
  /** Trials by their rows; undefined: none are shown, of a table whose lines have more rows than were read. */
  trials: ReadonlyMap<string, TrialSummary[]> | undefined;
  /** Of rows whose curves are drawn. */
  looks: ReadonlyMap<string, Look>;
  selected: string | null;
  /** Where a reader picked a pivot: the row that all are compared with, a cell of some line; otherwise empty. */
  marked: string;
  /** Rows that are pointed out in a chart. */
  chosen: ReadonlySet<string>;
  /** Where the part of the page begins that has a row's curves and trials (`?first=`). */
  firstOf: (row: TableRow) => string | null | undefined;
  /** Of a long table each line has one height, however few of them are chosen, and says no more of its runs than fits. */
  dense: boolean;
  /** The places of the lines that are drawn. */
  onWindow: (from: number, to: number) => void;
}

/**
 * Rows by columns: mean ± s.d. over the seeds, how many there are, the difference to the baseline, and the paper's value beside. Of a
 * long table only the lines in sight are drawn.
 */
export function AblationTable(props: Props) {
  const { table, lines, choice, selected, onWindow } = props;
  const box = useRef<HTMLDivElement>(null);
  const { from, to } = useWindow(box, lines.length);
  useLayoutEffect(() => onWindow(from, to), [from, to, lines]);
  const isLong = lines.length > kMostDrawn;
  useShownAtFirst(box, isLong, lines, selected);
  useTopOfOther(box, choice);
  const columns = table.columns.filter((column) => !choice.without.has(column.name));
  const runs = props.trials && (props.dense && !table.pivoted ? "counted" : "listed");
  const places = useMemo(
    () => columns.map((column) => table.columns.indexOf(column)),
    [table, columns.map((column) => column.name).join("\n")],
  );
  return (
    <div
      class="panel scroll tall lines"
      data-scroll="table"
      ref={box}
      {...(isLong && { tabIndex: 0, role: "region", "aria-label": "Rows of the ablation table" })}
    >
      <table
        class={`ablation wide ${props.dense ? "dense" : ""}`}
        aria-rowcount={isLong ? lines.length + 2 : undefined}
      >
        <Caption table={table} parts={choice.parts} />
        <Head table={table} columns={columns} parts={choice.parts} order={choice.order} runs={runs} />
        <tbody>
          <Gap lines={from} />
          {lines.slice(from, to).map((line, i) => (
            <LineRow
              key={
                line.kind === "row" ? line.row.id : line.kind === "group" ? `group ${line.name}` : line.place
              }
              {...props}
              line={line}
              runs={runs}
              index={isLong ? from + i + 3 : undefined}
              places={places}
            />
          ))}
          <Gap lines={lines.length - to} />
        </tbody>
      </table>
      <Analyses table={table} />
      {table.notes.length > 0 && (
        <ul class="notes">
          {table.notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** Scrolls to the row that the address names. */
function useShownAtFirst(
  box: { current: HTMLElement | null },
  isLong: boolean,
  lines: Line[],
  selected: string | null,
): void {
  const done = useRef(selected === null);
  useLayoutEffect(() => {
    if (done.current || !isLong || !box.current) return;
    const place = lines.findIndex((line) => line.kind === "row" && line.row.id === selected);
    if (place < 0) return;
    done.current = true;
    box.current.scrollTop = Math.max(0, place * kLineHeight - box.current.clientHeight / 3);
  }, [lines, selected]);
}

/** Scrolls to the top when the rows or their order change. */
function useTopOfOther(box: { current: HTMLElement | null }, { order, find, complete }: Choice): void {
  const which = [order.column, order.descending, find, complete].join("\n");
  const shown = useRef(which);
  useLayoutEffect(() => {
    if (shown.current !== which) box.current?.scrollTo({ top: 0 });
    shown.current = which;
  }, [which]);
}

/** What a row is compared with: its group's baseline, or the table's. */
function baselineOf({ table, rows }: Props, row: TableRow): TableRow | undefined {
  return rows.get(row.baseline) ?? (row.baseline || table.pivot ? undefined : rows.get(table.baseline));
}

function Caption({ table, parts }: { table: Table; parts: Parts }) {
  const isPicked = (table.pivot?.picked.length ?? 0) > 0;
  const hasBest =
    table.left_out > 0 || table.rows.some((row) => row.cells.some((cell) => cell.comparison?.best));
  const baseline = isPicked ? undefined : table.rows.find((row) => row.id === table.baseline);
  return (
    <caption>
      <p class="caption-text">
        Mean{parts.has("sd") && " ± standard deviation"} over the seeds{parts.has("n") && " (n)"}.{" "}
        {compares(table) && parts.has("delta") && (
          <>
            Δ is the difference from the baseline
            {baseline && (
              <>
                {" "}
                <strong class="name" title={baseline.label}>
                  {baseline.label}
                </strong>
              </>
            )}
            {!baseline && (isPicked ? ", also across columns" : " of the group")}, grey where it is not
            significant ({table.compare.legend}).{" "}
          </>
        )}
        {hasBest
          ? "Bold: the best of a column and values not significantly different from it; underlined: the second best."
          : "No value is bold: the test separates no best value in any column."}
      </p>
    </caption>
  );
}

interface LineProps extends Props {
  index: number | undefined;
  places: number[];
  runs: RunsShown | undefined;
}

function LineRow(props: LineProps & { line: Line }) {
  const { line, index } = props;
  if (line.kind === "group") return <GroupRow {...line} closedNow={props.choice.closed} index={index} />;
  if (line.kind === "unread")
    return (
      <tr class="unread" aria-rowindex={index}>
        <th scope="row" class="muted">
          loading…
        </th>
        <td colSpan={100} />
      </tr>
    );
  return <ValueRow {...props} row={line.row} />;
}

/** The heading of a group of rows, which folds them away. */
function GroupRow({
  name,
  rows,
  closed,
  closedNow,
  index,
}: Extract<Line, { kind: "group" }> & { closedNow: ReadonlySet<string>; index: number | undefined }) {
  const toggle = (): void => {
    const next = new Set(closedNow);
    if (!next.delete(name)) next.add(name);
    navigate(withQuery({ closed: [...next] }));
  };
  return (
    <tr class="row-group" aria-rowindex={index}>
      <th scope="rowgroup" colSpan={100}>
        <button type="button" class="fold" aria-expanded={!closed} onClick={toggle}>
          <span class="fold-arrow" aria-hidden="true">
            {closed ? "▸" : "▾"}
          </span>
          <span class="name" title={name}>
            {name}
          </span>
          {closed && <span class="muted">{plural(rows, "row")}</span>}
        </button>
      </th>
    </tr>
  );
}

function ValueRow(props: LineProps & { row: TableRow }) {
  const { table, row, choice, trials, looks, selected, chosen, index, places, runs } = props;
  const baseline = baselineOf(props, row);
  const isBaseline = baseline?.id === row.id;
  const look = looks.get(row.id);
  const first = props.firstOf(row);
  const ids = rowsOf(row);
  const ofRow = [...ids].flatMap((id) => trials?.get(id) ?? []);
  const isLit = useLit(ids);
  const isChosen = chosen.size > 0 && [...ids].some((id) => chosen.has(id));
  const others = { row: row.id === selected ? null : row.id, column: null, state: null };
  return (
    <tr
      class={[
        isBaseline && "baseline",
        row.id === selected && "selected",
        isChosen && "chosen",
        isLit && "lit",
      ]
        .filter(Boolean)
        .join(" ")}
      aria-rowindex={index}
    >
      <th scope="row">
        <RowName table={table} href={withQuery({ ...others, ...(first !== undefined && { first }) })}>
          {look ? <Swatch look={look} /> : !table.pivoted && <span class="swatch-none" />}
          {!sameName(row.id, row.label) && (
            <span class="row-id name" title={row.id}>
              {row.id}
            </span>
          )}
          <span class="name" title={row.label}>
            {row.label}
          </span>
          {isBaseline && <span class="tag">baseline</span>}
          {isChosen && <span class="tag">chosen in Charts</span>}
          {row.not_trained && (
            <span class="tag" title={row.not_trained_why}>
              not trained
            </span>
          )}
        </RowName>
      </th>
      {places.map((place) => (
        <Cells
          key={table.columns[place]!.name}
          column={table.columns[place]!}
          cell={row.cells[place]!}
          row={row}
          baseline={isBaseline ? undefined : baseline?.cells[place]}
          isMarked={props.marked !== "" && row.cells[place]!.row === props.marked}
          parts={choice.parts}
          table={table}
          first={first}
        />
      ))}
      {runs && (
        <td>
          {runs === "counted" ? (
            <RunCounts row={row.id} first={first} trials={ofRow} />
          ) : (
            <Runs trials={ofRow} levels={levelsOfRows(table, row)} />
          )}
        </td>
      )}
    </tr>
  );
}

/** Of the rows that a line of a pivoted table is made of, the level of each. */
function levelsOfRows(table: Table, line: TableRow): Map<string, string> {
  return new Map(
    line.cells.flatMap((cell, i) => {
      const level = levelsOf(table.columns[i]!, table.pivot);
      return table.pivoted && level ? [[cell.row, level]] : [];
    }),
  );
}

/** Links to the row. A line of a pivoted table is several rows, which its cells link to. */
function RowName({ table, href, children }: { table: Table; href: string; children: ComponentChildren }) {
  if (table.pivoted) return <span class="row-name">{children}</span>;
  return (
    <Link class="row-name" href={href}>
      {children}
    </Link>
  );
}
