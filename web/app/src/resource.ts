// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, get } from "./api";
import { live, type Change } from "./live";

/** What a page knows of one address of the API. `data` with `error`: what was there before it failed. */
export interface Resource<T> {
  data?: T;
  error?: ApiError;
}

const kPauseMs = 1000;

/**
 * Calls `work` now, and again after changes that concern it: one call at a time, starts at least a second apart, so that a burst of
 * changes is one call.
 */
export function runOnChange(
  concerns: (change: Change) => boolean,
  work: (signal: AbortSignal) => Promise<void>,
): () => void {
  const abort = new AbortController();
  let busy = false;
  let again = false;
  const go = async (): Promise<void> => {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    do {
      again = false;
      await work(abort.signal);
      await new Promise((resolve) => window.setTimeout(resolve, kPauseMs));
    } while (again && !abort.signal.aborted);
    busy = false;
  };
  const stop = live.onChange((change) => {
    if (change.sweep === "" || concerns(change)) void go();
  });
  void go();
  return () => {
    stop();
    abort.abort();
  };
}

/** Reads `path` (null: nothing yet) and keeps it fresh. While a new path of the same `key` loads, the old data stay. */
export function useResource<T>(
  path: string | null,
  concerns: (change: Change) => boolean,
  key?: string,
): Resource<T> {
  const [resource, setResource] = useState<Resource<T>>({});
  const shown = useRef<string | undefined>(undefined);
  useEffect(() => {
    const identity = key ?? path ?? "";
    if (shown.current !== identity) setResource({});
    shown.current = identity;
    if (path === null) return;
    return runOnChange(concerns, async (signal) => {
      try {
        const data = await get<T>(path, signal);
        if (!signal.aborted) setResource({ data });
      } catch (error) {
        if (signal.aborted) return;
        const shownError = error instanceof ApiError ? error : new ApiError(0, "UNKNOWN", String(error));
        setResource((old) => ({ ...old, error: shownError }));
      }
    });
  }, [path, key]);
  return resource;
}
