// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { Link, useAddress, withQuery } from "../router";

/** The order of a table, kept in the query: `?sort=acc`, or `?sort=-acc` for descending. */
export interface Order {
  parameter: string;
  column: string | null;
  descending: boolean;
}

export function useOrder(parameter: string): Order {
  const text = useAddress().searchParams.get(parameter);
  return { parameter, column: text?.replace(/^-/, "") ?? null, descending: text?.startsWith("-") ?? false };
}

type Key = number | string | null | undefined;

/** Sorts by the ordered column; what has no value comes last either way. Without an order: as given. */
export function sorted<T>(items: readonly T[], order: Order, keys: Record<string, (item: T) => Key>): T[] {
  const key = order.column === null ? undefined : keys[order.column];
  if (!key) return [...items];
  const sign = order.descending ? -1 : 1;
  return [...items].sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    if (x === y) return 0;
    if (x === null || x === undefined) return 1;
    if (y === null || y === undefined) return -1;
    return (
      sign *
      (typeof x === "number" && typeof y === "number"
        ? x - y
        : String(x).localeCompare(String(y), undefined, { numeric: true }))
    );
  });
}

interface HeadProps {
  order: Order;
  column: string;
  /** Descending first, where more is the interesting end. */
  highFirst?: boolean;
  numeric?: boolean;
  colSpan?: number;
  rowSpan?: number;
  class?: string;
  title?: string;
  children: ComponentChildren;
}

/** A column head that sorts: ascending, descending, then as given. A real link, so the keyboard reaches it and the address keeps it. */
export function SortHead({
  order,
  column,
  highFirst = false,
  numeric = false,
  children,
  ...rest
}: HeadProps) {
  const here = order.column === column;
  const turned = here && order.descending !== highFirst;
  const next = !here
    ? highFirst
      ? `-${column}`
      : column
    : turned
      ? null
      : order.descending
        ? column
        : `-${column}`;
  return (
    <th
      scope={rest.colSpan && rest.colSpan > 1 ? "colgroup" : "col"}
      aria-sort={here ? (order.descending ? "descending" : "ascending") : "none"}
      {...rest}
      class={`${numeric ? "num " : ""}${rest.class ?? ""}`}
    >
      <Link class="sort" href={withQuery({ [order.parameter]: next })}>
        <span class="sort-text">{children}</span>
        <span class="arrow" aria-hidden="true">
          {here ? (order.descending ? "▾" : "▴") : "▾"}
        </span>
      </Link>
    </th>
  );
}
