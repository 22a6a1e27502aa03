// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from "preact/hooks";
import { asApiError, getAgain, type ApiError, type Known } from "../../../../api";
import type { Table, TableRow } from "../../../../generated/ablate";
import { live, type Change } from "../../../../live/live";

/** A list that is too long for one answer, read in pieces of this many as they are needed. */
export const kPiece = 200;

/** What was read of it: the answers that make up each piece. */
export interface Pieces<T> {
  known: ReadonlyMap<number, T[]>;
  error?: ApiError;
}

/** How soon after a change a piece is read again: one in sight, or another one. A sweep of thousands of rows changes all the time. */
const kNearMs = 1000;
const kFarMs = 15_000;
const kRetryMs = 5000;

interface Read<T> {
  answers: Known<T>[];
  change: number;
  at: number;
}

/**
 * Reads the pieces that are needed, one after the other: those in sight (`near`) first, and again when something changed that
 * `concerns` them. `path`: null: nothing yet.
 */
export function usePieces<T extends { next: number }>(
  path: string | null,
  near: readonly number[],
  far: readonly number[],
  concerns: (change: Change) => boolean,
): Pieces<T> {
  const [pieces, setPieces] = useState<Pieces<T>>({ known: new Map() });
  const needed = useRef({ near, far });
  needed.current = { near, far };
  const look = useRef(() => {});
  useEffect(() => {
    setPieces({ known: new Map() });
    if (path === null) return;
    const abort = new AbortController();
    const known = new Map<number, Read<T>>();
    let change = 0;
    let busy = false;
    let timer = 0;
    const isOld = (piece: number): boolean => known.get(piece)?.change !== change;
    const due = (): number | undefined => {
      const rested = (piece: number, ms: number) => Date.now() - (known.get(piece)?.at ?? -Infinity) >= ms;
      return (
        needed.current.near.find((piece) => isOld(piece) && rested(piece, kNearMs)) ??
        needed.current.far.find((piece) => isOld(piece) && rested(piece, kFarMs))
      );
    };
    const go = async (): Promise<void> => {
      if (busy) return;
      busy = true;
      window.clearTimeout(timer);
      let wait = kNearMs;
      await live.ready();
      for (let piece = due(); piece !== undefined && !abort.signal.aborted; piece = due()) {
        const before = change;
        try {
          const answers = await readPiece<T>(path, piece, known.get(piece)?.answers ?? [], abort.signal);
          known.set(piece, { answers, change: before, at: Date.now() });
          setPieces({
            known: new Map([...known].map(([at, read]) => [at, read.answers.map(({ data }) => data)])),
          });
        } catch (error) {
          if (abort.signal.aborted) break;
          // whatever is wrong with it: the whole, next time
          for (const answer of known.get(piece)?.answers ?? []) answer.etag = "";
          setPieces((old) => ({ ...old, error: asApiError(error) }));
          wait = kRetryMs;
          break;
        }
      }
      busy = false;
      const { near, far } = needed.current;
      if (!abort.signal.aborted && [...near, ...far].some(isOld))
        timer = window.setTimeout(() => void go(), wait);
    };
    look.current = () => void go();
    const stopChanges = live.onChange((told) => {
      if (told.sweep !== "" && !concerns(told)) return;
      ++change;
      void go();
    });
    let wasLive = live.state.kind === "live";
    const stopStates = live.onState(({ kind, follows }) => {
      if (kind === "live" && !wasLive) {
        if (!follows) ++change;
        void go();
      }
      wasLive = kind === "live";
    });
    void go();
    return () => {
      stopChanges();
      stopStates();
      window.clearTimeout(timer);
      look.current = () => {};
      abort.abort();
    };
  }, [path]);
  useEffect(() => look.current(), [near.join(), far.join()]);
  return pieces;
}

/** All of a piece: an answer may have less than was asked for. `before`: what was known of it. */
async function readPiece<T extends { next: number }>(
  path: string,
  piece: number,
  before: Known<T>[],
  signal: AbortSignal,
): Promise<Known<T>[]> {
  const end = (piece + 1) * kPiece;
  const answers: Known<T>[] = [];
  let same = true; // an answer that begins elsewhere than before is of another address
  for (let first = piece * kPiece; first < end;) {
    const part = `${path}${path.includes("?") ? "&" : "?"}first=${first}&count=${end - first}`;
    const known: Known<T> | undefined = same ? before[answers.length] : undefined;
    const answer: Known<T> = await getAgain<T>(part, known, signal);
    same &&= known?.data.next === answer.data.next;
    answers.push(answer);
    first = answer.data.next > first ? answer.data.next : end;
  }
  return answers;
}

/** The pieces of a list of `total`. */
export function piecesOf(total: number): number[] {
  return Array.from({ length: Math.ceil(total / kPiece) }, (_, piece) => piece);
}

/** How many rows a table has in all. */
export function rowsIn(part: Table): number {
  return part.rows.length + part.left_out;
}

/** The rows of a part that begins with row `first`, without the baseline's where that stands in front of or behind them. */
export function ownRows(part: Table, first: number): TableRow[] {
  const count = Math.max(0, (part.next > 0 ? part.next : rowsIn(part)) - first);
  if (part.rows.length <= count) return part.rows;
  const before = part.rows[0]!.id === part.baseline;
  return before ? part.rows.slice(1, 1 + count) : part.rows.slice(0, count);
}
