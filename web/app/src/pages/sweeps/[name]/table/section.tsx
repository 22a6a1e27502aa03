// SPDX-License-Identifier: Apache-2.0
import { useCallback, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { ErrorNotice, Loaded, Notice } from "../../../../components/notice";
import { kMostDrawn } from "../../../../components/window";
import type { SweepDetail, Table, TableRow, TrialSummary } from "../../../../generated/ablate";
import type { Change } from "../../../../live/live";
import type { Look } from "../../../../palette";
import { useResource } from "../../../../resource";
import { Link, useAddress, withQuery } from "../../../../router";
import { idsOf } from "../charts/choice";
import { AblationTable } from "./ablation_table";
import { linesOf, needsAll, type Choice, type Line } from "./choice";
import { CopyMenu } from "./copy_menu";
import { kPiece, usePieces } from "./pieces";
import { useRows, type KnownRows } from "./rows";
import { Toolbar } from "./toolbar";

interface Props {
  sweep: string;
  /** The part of the table, a line for each row, that curves and trials are shown of: the row that it begins with, and it. */
  first: number;
  part: Table;
  /** The rows of the whole table, a line for each, as far as they were read. */
  known: KnownRows;
  choice: Choice;
  /** The trials of the part. */
  detail: SweepDetail | undefined;
  looks: ReadonlyMap<string, Look>;
  selected: string | null;
}

/** Whether the table is pivoted, as its file asks, and not with one line per row (`?form=rows`). */
export function isPivoted(table: Table | undefined, query: URLSearchParams): boolean {
  return table?.pivot !== undefined && query.get("form") !== "rows";
}

/** The ablation table and its controls. */
export function TableSection(props: Props) {
  const query = useAddress().searchParams;
  if (!isPivoted(props.part, query)) return <Rows {...props} pivot={props.part.pivot !== undefined} />;
  return <Lines {...props} />;
}

/** A pivoted table; its first piece has the columns. */
function Lines(props: Props) {
  const path = `/sweeps/${encodeURIComponent(props.sweep)}/table?first=0&count=${kPiece}&statistics=1`;
  const lines = useResource<Table>(path, (change) => change.sweep === props.sweep);
  return (
    <Loaded of={lines} what="The table" lines={7}>
      {(table) => <LineRows {...props} part={table} whole={props.part} />}
    </Loaded>
  );
}

function LineRows(props: Props & { whole: Table }) {
  const { sweep, part, choice } = props;
  const sorted = needsAll(choice);
  const path = `/sweeps/${encodeURIComponent(sweep)}/table?statistics=1`;
  const known = useRows(path, part, 0, { all: sorted, sorted }, (change) => change.sweep === sweep);
  return <Rows {...props} first={0} known={known} pivot />;
}

/** `whole`: of a pivoted table its long form, as far as that was read. */
function Rows({
  sweep,
  first,
  part,
  known,
  choice,
  detail,
  looks,
  selected,
  pivot,
  whole,
}: Props & { pivot: boolean; whole?: Table }) {
  const [sight, setSight] = useState({ from: 0, to: kMostDrawn });
  const onWindow = useCallback(
    (from: number, to: number) =>
      setSight((old) => (old.from === from && old.to === to ? old : { from, to })),
    [],
  );
  const picked = useAddress().searchParams.get("chosen");
  const chosen = useMemo(() => idsOf(picked), [picked]);
  const concerns = (change: Change): boolean => change.sweep === sweep;
  const path = `/sweeps/${encodeURIComponent(sweep)}`;
  const { rows, total, places, byId } = known;
  const own = Math.floor(first / kPiece);
  const lines = useMemo(() => linesOf(part, rows, choice), [part, rows, choice]);
  const groups = useMemo(
    () => [...new Set(rows.map((row) => row?.group ?? ""))].filter((group) => group !== ""),
    [rows],
  );
  // which pieces: those in sight, as far as it is known where rows stand
  const inSight = useMemo(() => {
    const found = new Set<number>();
    for (const line of lines.slice(sight.from, sight.to)) {
      const place =
        line.kind === "unread" ? line.place : line.kind === "row" ? places.get(line.row.id) : undefined;
      if (place !== undefined) found.add(Math.floor(place / kPiece));
    }
    return [...found];
  }, [lines, places, sight]);
  useLayoutEffect(() => known.look(inSight), [inSight.join()]);

  const elsewhere = part.pivoted ? [] : inSight.filter((piece) => piece !== own);
  const trialPieces = usePieces<SweepDetail>(
    total <= kPiece || part.pivoted ? null : path,
    needsAll(choice) ? [] : elsewhere,
    needsAll(choice) ? elsewhere : [],
    concerns,
  );
  const trials = useMemo(() => {
    const found = new Map<string, TrialSummary[]>();
    const seen = new Set<string>();
    const answers = [detail, ...[...trialPieces.known.values()].flat()];
    for (const trial of answers.flatMap((answer) => answer?.trials ?? [])) {
      const key = `${trial.id} ${trial.row}`; // the baseline's come with every piece
      if (seen.has(key)) continue;
      seen.add(key);
      found.set(trial.row, [...(found.get(trial.row) ?? []), trial]);
    }
    return found;
  }, [detail, trialPieces.known]);

  const firstOf = (row: TableRow): string | null | undefined => {
    const place = places.get(row.id);
    if (part.pivoted || place === undefined) return undefined;
    const begins = Math.floor(place / kPiece) * kPiece;
    return begins > 0 ? String(begins) : null;
  };
  const count = useMemo(() => lines.reduce((sum, line) => sum + rowsBehind(line), 0), [lines]);
  const shown = needsAll(choice) ? count : total;
  return (
    <>
      <Toolbar
        table={part}
        choice={choice}
        shown={shown}
        total={total}
        read={places.size}
        groups={groups}
        isLong={lines.length > kMostDrawn}
      >
        {pivot && <FormSwitch asRows={!part.pivoted} />}
        <CopyMenu sweep={sweep} table={part} choice={choice} longForm={pivot && !part.pivoted} />
      </Toolbar>
      {known.error && <ErrorNotice error={known.error} what="A part of the table" />}
      {lines.length === 0 && total > 0 ? (
        <Notice kind="empty" title="No row matches.">
          <Link href={withQuery({ find: null, complete: null, brush: [] })}>Show all rows</Link>
        </Notice>
      ) : (
        <AblationTable
          table={part}
          lines={lines}
          choice={choice}
          rows={byId}
          trials={whole && whole.left_out > 0 ? undefined : trials}
          looks={looks}
          selected={selected}
          chosen={chosen}
          firstOf={firstOf}
          dense={total > kMostDrawn}
          onWindow={onWindow}
        />
      )}
    </>
  );
}

/** How many rows a line shows, or has folded away. */
function rowsBehind(line: Line): number {
  if (line.kind === "row") return 1;
  return line.kind === "group" && line.closed ? line.rows : 0;
}

function FormSwitch({ asRows }: { asRows: boolean }) {
  const current = { "aria-current": "true" } as const;
  return (
    <span class="switch" role="group" aria-label="Table form">
      <Link href={withQuery({ form: null, sort: null, without: [] })} {...(asRows ? {} : current)}>
        Pivoted
      </Link>
      <Link href={withQuery({ form: "rows", sort: null, without: [] })} {...(asRows ? current : {})}>
        One line per row
      </Link>
    </span>
  );
}
