// SPDX-License-Identifier: Apache-2.0
import { useCallback, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
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
import { formOf, isPivoted, withForm, type Form } from "./form";
import { kPiece, usePieces } from "./pieces";
import { PivotMenu } from "./pivot_menu";
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

/** A form of the table, and where its other pieces are read; null: it is the long form, which the page reads. */
interface Shown {
  part: Table;
  path: string | null;
}

/** The ablation table and its controls. While another form is read, the one before stays. */
export function TableSection(props: Props) {
  const { sweep, choice } = props;
  const form = formOf(useAddress().searchParams);
  const concerns = (change: Change): boolean => change.sweep === sweep;
  const path = isPivoted(props.part, form) ? linesPath(sweep, form.picked) : null;
  const wanted = path && `${path}&first=0&count=${kPiece}`; // the first piece has the columns
  const lines = useResource<Table>(wanted, concerns, `lines of ${sweep}`);
  const shown = useRef<Shown | undefined>(undefined);
  if (path !== null && lines.of === wanted && lines.data) shown.current = { part: lines.data, path };
  else if (path === null || (shown.current ? shown.current.path === null : lines.error))
    shown.current = { part: props.part, path: null };
  const { part, path: ofLines } = shown.current ?? { part: undefined, path: null };
  const sorted = needsAll(choice);
  const all = { all: sorted, sorted };
  const known = useRows(ofLines ?? "", ofLines === null ? undefined : part, 0, all, concerns);
  return (
    <>
      {path !== null && lines.error && <ErrorNotice error={lines.error} what="The pivoted table" />}
      {!part && <Loaded of={{}} what="The table" lines={7} children={() => null} />}
      {part && (
        <Rows {...props} part={part} {...(ofLines !== null && { first: 0, known, whole: props.part })} />
      )}
    </>
  );
}

function linesPath(sweep: string, picked: readonly string[]): string {
  const query = new URLSearchParams({ statistics: "1" });
  if (picked.length > 0) query.set("pivot", picked.join(","));
  return `/sweeps/${encodeURIComponent(sweep)}/table?${query}`;
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
  whole,
}: Props & { whole?: Table }) {
  const [sight, setSight] = useState({ from: 0, to: kMostDrawn });
  const onWindow = useCallback(
    (from: number, to: number) =>
      setSight((old) => (old.from === from && old.to === to ? old : { from, to })),
    [],
  );
  const query = useAddress().searchParams;
  const form = formOf(query);
  const pointedOut = query.get("chosen");
  const chosen = useMemo(() => idsOf(pointedOut), [pointedOut]);
  const ofFile = (whole ?? part).pivot;
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
        {ofFile && <FormSwitch form={form} />}
        {(total > 1 || part.pivoted) && <PivotMenu sweep={sweep} ofFile={ofFile} />}
        <CopyMenu sweep={sweep} table={part} choice={choice} />
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
          marked={whole && form.picked.length > 0 ? whole.baseline : ""}
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

/** Between both forms that the file has. */
function FormSwitch({ form }: { form: Form }) {
  const current = { "aria-current": "true" } as const;
  const here = form.picked.length > 0 ? undefined : form.asRows;
  return (
    <span class="switch" role="group" aria-label="Table form">
      {[false, true].map((asRows) => (
        <Link
          key={String(asRows)}
          href={withQuery(withForm({ picked: [], asRows }))}
          {...(here === asRows ? current : {})}
        >
          {asRows ? "One line per row" : "Pivoted"}
        </Link>
      ))}
    </span>
  );
}
