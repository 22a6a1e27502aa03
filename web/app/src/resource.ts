// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from "preact/hooks";
import { asApiError, getAgain, type ApiError, type Known } from "./api";
import { live, type Change } from "./live/live";

/** What a page knows of one address of the API. `data` with `error`: what was there before it failed. */
export interface Resource<T> {
  data?: T;
  /** The path that `data` is of: while a new one loads, the old. */
  of?: string;
  error?: ApiError;
}

const kPauseMs = 1000;

/** A pause between two reads: a second, or longer unless it is cut short. */
export class Pause {
  private isCut = false;
  private end = () => {};

  constructor(private readonly ms = kPauseMs) {}

  async over(): Promise<void> {
    await new Promise((over) => setTimeout(over, kPauseMs));
    if (!this.isCut && this.ms > kPauseMs)
      await new Promise<void>((over) => {
        this.end = over;
        setTimeout(over, this.ms - kPauseMs);
      });
    this.isCut = false;
  }
  /** Ends what is longer than a second, of this pause or of the next one. */
  cut(): void {
    this.isCut = true;
    this.end();
  }
}

/**
 * Calls `work` now, and again after changes that concern it: one call at a time with a pause in between, so that a burst of changes is
 * one call. Work that failed (it says false) is done again when the server is there again.
 */
export function runOnChange(
  concerns: (change: Change) => boolean,
  work: (signal: AbortSignal) => Promise<boolean>,
  pause = new Pause(),
): () => void {
  const abort = new AbortController();
  let busy = false;
  let again = false;
  let stands = true; // what was read, and whatever changed since would have been told
  const go = async (): Promise<void> => {
    again = true;
    if (busy) return;
    busy = true;
    while (again && !abort.signal.aborted) {
      again = false;
      await live.ready();
      if (abort.signal.aborted) return;
      const { follows, kind } = live.state;
      stands = follows && kind !== "lost"; // what is read of a server that is lost may fail after it is back
      stands = (await work(abort.signal)) && follows;
      await pause.over();
    }
    busy = false;
  };
  const stopChanges = live.onChange((change) => {
    if (concerns(change) || change.sweep === "") void go();
  });
  let wasLive = live.state.kind === "live";
  const stopStates = live.onState(({ kind }) => {
    if (kind === "live" && !wasLive && !stands) void go();
    wasLive = kind === "live";
  });
  void go();
  return () => {
    stopChanges();
    stopStates();
    abort.abort();
  };
}

/** Of a read that costs the server much: how long changes wait for it, unless `watched` has changed as well. */
interface Slow {
  ms: number;
  watched: string;
}

/** Reads `path` (null: nothing yet) and keeps it fresh. While a new path of the same `key` loads, the old data stay. */
export function useResource<T>(
  path: string | null,
  concerns: (change: Change) => boolean,
  key?: string,
  slow?: Slow,
): Resource<T> {
  const [resource, setResource] = useState<Resource<T>>({});
  const shown = useRef<string | undefined>(undefined);
  const [pause] = useState(() => new Pause(slow?.ms));
  useEffect(() => pause.cut(), [slow?.watched]);
  useEffect(() => {
    const identity = key ?? path ?? "";
    if (shown.current !== identity) setResource({});
    shown.current = identity;
    if (path === null) return;
    let known: Known<T> | undefined;
    return runOnChange(
      concerns,
      async (signal) => {
        try {
          known = await getAgain<T>(path, known, signal);
          if (!signal.aborted) setResource({ data: known.data, of: path });
          return true;
        } catch (error) {
          if (signal.aborted) return false;
          known = undefined; // whatever is wrong with it: the whole, next time
          setResource((old) => ({ ...old, error: asApiError(error) }));
          return false;
        }
      },
      pause,
    );
  }, [path, key]);
  return resource;
}
