// SPDX-License-Identifier: Apache-2.0
import { useMemo, useState } from "preact/hooks";
import type { ApiError } from "../../../../api";
import type { Table, TableRow } from "../../../../generated/ablate";
import type { Change } from "../../../../live/live";
import { kPiece, ownRows, piecesOf, rowsIn, usePieces } from "./pieces";

/** The rows of a table as far as they were read: the page's own part, and the pieces that somebody needs. */
export interface KnownRows {
  /** In their order; undefined: not read yet. */
  rows: readonly (TableRow | undefined)[];
  total: number;
  /** How many were read. */
  read: number;
  /** Where a row stands. */
  places: ReadonlyMap<string, number>;
  byId: ReadonlyMap<string, TableRow>;
  error: ApiError | undefined;
  /** Says which pieces are in sight. */
  look: (pieces: readonly number[]) => void;
}

/**
 * Reads the rows of a table of a sweep (`path`: its address with what its parts have in common) of which `part` is known, from row
 * `first` on. `all`: all of them; `sorted`: those in sight stand anywhere.
 */
export function useRows(
  path: string,
  part: Table | undefined,
  first: number,
  { all, sorted }: { all: boolean; sorted: boolean },
  concerns: (change: Change) => boolean,
): KnownRows {
  const total = part ? rowsIn(part) : 0;
  const own = Math.floor(first / kPiece);
  const [near, setNear] = useState<readonly number[]>([]);
  const others = piecesOf(total).filter((piece) => piece !== own);
  const pieces = usePieces<Table>(
    others.length === 0 ? null : path,
    sorted ? [] : near.filter((piece) => piece !== own),
    all || part?.rows.some((row) => row.group !== "") ? others : [],
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
    if (part) put(part, first);
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
      ...(part?.rows ?? []),
    ];
    return new Map(known.flatMap((row) => (row ? [[row.id, row] as const] : [])));
  }, [part, rows, pieces.known]);
  return { rows, total, read: places.size, places, byId, error: pieces.error, look: setNear };
}
