// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import { asApiError, type ApiError } from "./api";

type Load<T> = () => Promise<{ default: T }>;
const loaded = new Map<Load<unknown>, unknown>();

/** What a file of its own has, which is read when it is first needed. `load`: the same function each time. */
export function useLate<T>(load: Load<T>): { data?: T; error?: ApiError } {
  const [, setTold] = useState(0);
  const [error, setError] = useState<ApiError>();
  useEffect(() => {
    if (loaded.has(load)) return;
    load().then(
      (module) => {
        loaded.set(load, module.default);
        setTold(1);
      },
      (failure: unknown) => setError(asApiError(failure)),
    );
  }, []);
  const data = loaded.get(load) as T | undefined;
  return { ...(data !== undefined && { data }), ...(error && { error }) };
}
