// SPDX-License-Identifier: Apache-2.0
import { useCallback, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { ErrorNotice, Loaded, Notice } from "../../../../components/notice";
import { useOrder } from "../../../../components/sort";
import type { SweepDetail, Table, TableRow, TrialSummary } from "../../../../generated/ablate";
import type { Change } from "../../../../live/live";
import type { Look } from "../../../../palette";
import { useResource } from "../../../../resource";
import { Link, useAddress, withQuery } from "../../../../router";
import { AblationTable } from "./ablation_table";
import { choiceOf, linesOf, needsAll, type Line } from "./choice";
import { CopyMenu } from "./copy_menu";
import { kPiece, ownRows, piecesOf, rowsIn, usePieces } from "./pieces";
import { Toolbar } from "./toolbar";
import { kMostDrawn } from "./window";

interface Props {
  sweep: string;
  /** The part of the table, a line for each row, that curves and trials are shown of: the row that it begins with, and it. */
  first: number;
  part: Table;
  /** The same of the trials. */
  detail: SweepDetail | undefined;
  looks: ReadonlyMap<string, Look>;
  selected: string | null;
}

/** The ablation table and its controls. If the file has a pivot: pivoted, or with one line per row (`?form=rows`). */
export function TableSection(props: Props) {
  const pivot = props.part.pivot !== undefined;
  const asRows = useAddress().searchParams.get("form") === "rows";
  if (!pivot || asRows) return <Rows {...props} pivot={pivot} />;
  return <Lines {...props} />;
}

/** A pivoted table; its first piece has the columns. */
function Lines(props: Props) {
  const path = `/sweeps/${encodeURIComponent(props.sweep)}/table?first=0&count=${kPiece}&statistics=1`;
  const lines = useResource<Table>(path, (change) => change.sweep === props.sweep);
  return (
    <Loaded of={lines} what="The table" lines={7}>
      {(table) => <Rows {...props} first={0} part={table} whole={props.part} pivot />}
    </Loaded>
  );
}

/** `whole`: of a pivoted table its long form, as far as that was read. */
function Rows({
  sweep,
  first,
  part,
  detail,
  looks,
  selected,
  pivot,
  whole,
}: Props & { pivot: boolean; whole?: Table }) {
  const address = useAddress();
  const order = useOrder("sort");
  const choice = useMemo(() => choiceOf(address.searchParams, order), [address.search]);
  const [sight, setSight] = useState({ from: 0, to: kMostDrawn });
  const onWindow = useCallback(
    (from: number, to: number) =>
      setSight((old) => (old.from === from && old.to === to ? old : { from, to })),
    [],
  );
  const concerns = (change: Change): boolean => change.sweep === sweep;
  const path = `/sweeps/${encodeURIComponent(sweep)}`;
  const total = rowsIn(part);
  const own = Math.floor(first / kPiece);
  const grouped = part.rows.some((row) => row.group !== "");
  const all = needsAll(choice) || grouped;

  // which pieces: those in sight, as far as it is known where rows stand
  const [near, setNear] = useState<number[]>([]);
  const others = piecesOf(total).filter((piece) => piece !== own);
  const pieces = usePieces<Table>(
    others.length === 0 ? null : `${path}/table?statistics=1${part.pivoted ? "" : "&long_form=1"}`,
    needsAll(choice) ? [] : near.filter((piece) => piece !== own),
    all ? others : [],
    concerns,
  );
  const rows = useMemo(() => {
    const rows = new Array<TableRow | undefined>(total).fill(undefined);
    const put = (table: Table, at: number): number => {
      const own = ownRows(table, at);
      own.forEach((row, i) => at + i < total && (rows[at + i] = row));
      return at + own.length;
    };
    for (const [piece, answers] of pieces.known)
      answers.reduce((at, answer) => put(answer, at), piece * kPiece);
    put(part, first);
    return rows;
  }, [part, first, total, pieces.known]);
  const places = useMemo(
    () => new Map(rows.flatMap((row, place) => (row ? [[row.id, place] as const] : []))),
    [rows],
  );
  // the baseline's row comes with every answer: what was read last of it counts, and that is the page's own part
  const byId = useMemo(() => {
    const known = [
      ...[...pieces.known.values()].flat().flatMap((answer) => answer.rows),
      ...rows,
      ...part.rows,
    ];
    return new Map(known.flatMap((row) => (row ? [[row.id, row] as const] : [])));
  }, [part, rows, pieces.known]);
  const lines = useMemo(() => linesOf(part, rows, choice), [part, rows, choice]);
  const groups = useMemo(
    () => [...new Set(rows.map((row) => row?.group ?? ""))].filter((group) => group !== ""),
    [rows],
  );
  const inSight = useMemo(() => {
    const found = new Set<number>();
    for (const line of lines.slice(sight.from, sight.to)) {
      const place =
        line.kind === "unread" ? line.place : line.kind === "row" ? places.get(line.row.id) : undefined;
      if (place !== undefined) found.add(Math.floor(place / kPiece));
    }
    return [...found];
  }, [lines, places, sight]);
  useLayoutEffect(() => setNear(inSight), [inSight.join()]);

  const elsewhere = part.pivoted ? [] : inSight.filter((piece) => piece !== own);
  const trialPieces = usePieces<SweepDetail>(
    others.length === 0 || part.pivoted ? null : path,
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
  const chosen = useMemo(() => lines.reduce((count, line) => count + rowsBehind(line), 0), [lines]);
  const shown = needsAll(choice) ? chosen : total;
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
      {pieces.error && <ErrorNotice error={pieces.error} what="A part of the table" />}
      {lines.length === 0 && total > 0 ? (
        <Notice kind="empty" title="No row matches.">
          <Link href={withQuery({ find: null, complete: null })}>Show all rows</Link>
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
