// SPDX-License-Identifier: Apache-2.0
import { whole } from "../format";
import { Link, withQuery } from "../router";

/** Which part of a long list is shown, and the way to its neighbours: `?first=`. Nothing where it is the whole. */
export function Pager({
  first,
  size,
  total,
  what,
  note = "sorting is within these.",
}: {
  first: number;
  size: number;
  total: number;
  what: string;
  note?: string;
}) {
  if (first === 0 && total <= size) return null;
  const to = Math.min(first + size, total);
  const at = (next: number): string => withQuery({ first: next > 0 ? String(next) : null });
  return (
    <nav class="pager" aria-label={`Pages of ${what}`}>
      <span>
        {what} {whole(first + 1)} to {whole(to)} of {whole(total)}; {note}
      </span>
      {first > 0 && <Link href={at(Math.max(0, first - size))}>Previous</Link>}
      {to < total && <Link href={at(to)}>Next</Link>}
    </nav>
  );
}

/** Where the page in the address begins. */
export function firstOf(query: URLSearchParams): number {
  const text = query.get("first") ?? "";
  return /^\d{1,9}$/.test(text) ? Number(text) : 0;
}
