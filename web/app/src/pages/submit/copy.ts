// SPDX-License-Identifier: Apache-2.0
import { get } from "../../api";
import type { SearchResponse } from "../../generated/ablate";

/** Copies that are looked through for a free number. */
const kMostCopies = 200;

/** The first of "study-copy", "study-copy-2", … that is not taken; of a copy's copy, the next. */
export function copyName(name: string, taken: ReadonlySet<string>): string {
  const copy = `${name.replace(/-copy(-\d+)?$/, "")}-copy`;
  for (let i = 1; ; ++i) {
    const next = i === 1 ? copy : `${copy}-${i}`;
    if (!taken.has(next)) return next;
  }
}

/** A name for a copy of a sweep that no other has. Throws ApiError. */
export async function freeName(name: string, signal: AbortSignal): Promise<string> {
  const copies = `${copyName(name, new Set())}*`;
  const found = await Promise.all(
    [copies, `${copies} is:archived`].map((query) =>
      get<SearchResponse>(`/search?${new URLSearchParams({ query, count: String(kMostCopies) })}`, signal),
    ),
  );
  return copyName(name, new Set(found.flatMap(({ sweeps }) => sweeps.map((sweep) => sweep.name))));
}

/** A sweep file's text with another name; the rest of it stays, comments too. */
export function renamed(text: string, name: string): string {
  return text.replace(/^(name:[ \t]*)("[^"\n]*"|'[^'\n]*'|[^\s#]+)/m, (_, key: string) => key + name);
}
