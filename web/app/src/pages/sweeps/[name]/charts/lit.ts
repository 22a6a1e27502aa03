// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";

/** Rows under the pointer of a chart. Only the lines of the table whose state changes are drawn anew. */
class Lit {
  private ids: ReadonlySet<string> = new Set();
  private readonly listeners = new Set<() => void>();

  set(ids: Iterable<string>): void {
    const next = new Set(ids);
    if (next.size === 0 && this.ids.size === 0) return;
    this.ids = next;
    for (const listener of [...this.listeners]) listener();
  }
  hasOneOf(ids: ReadonlySet<string>): boolean {
    if (this.ids.size === 0) return false;
    for (const id of ids) if (this.ids.has(id)) return true;
    return false;
  }
  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }
}

export const lit = new Lit();

/** Whether one of these rows is under the pointer of a chart. */
export function useLit(ids: ReadonlySet<string>): boolean {
  const [isLit, setLit] = useState(false);
  const key = [...ids].join(" ");
  useEffect(() => {
    const look = (): void => setLit(lit.hasOneOf(ids));
    look();
    return lit.onChange(look);
  }, [key]);
  return isLit;
}
