// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";

const kShownMs = 4000;

/** A state that returns to `rest` by itself, 4 s after it was set: what a button did. */
export function useBrief<T>(rest: T): [T, (to: T) => void] {
  const [state, setState] = useState(rest);
  useEffect(() => {
    const over = setTimeout(() => setState(rest), kShownMs);
    return () => clearTimeout(over);
  }, [state]);
  return [state, setState];
}
