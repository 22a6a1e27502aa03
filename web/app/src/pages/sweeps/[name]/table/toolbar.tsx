// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { Menu } from "../../../../components/menu";
import { plural, whole } from "../../../../format";
import type { Table } from "../../../../generated/ablate";
import { Link, navigate, withQuery } from "../../../../router";
import { partsText, type Choice } from "./choice";
import { compares, headingOf, isSampled, kParts, levelOf, type Part } from "./columns";

interface Props {
  table: Table;
  choice: Choice;
  /** Rows that are shown, of how many, and how many of them were read. */
  shown: number;
  total: number;
  read: number;
  groups: string[];
  /** Whether not all rows are on the page, for the browser's own search to find. */
  isLong: boolean;
  children: ComponentChildren;
}

/** Chooses rows, columns and their parts. The address keeps all of it. */
export function Toolbar({ table, choice, shown, total, read, groups, isLong, children }: Props) {
  return (
    <div class="controls table-controls">
      <label>
        <span class="sr-only">Find rows</span>
        <input
          type="search"
          placeholder="Find rows"
          value={choice.find}
          title="Words in names, groups and settings"
          onInput={(event) => navigate(withQuery({ find: event.currentTarget.value || null }), "replace")}
        />
      </label>
      <label>
        <input
          type="checkbox"
          checked={choice.complete}
          onChange={(event) => navigate(withQuery({ complete: event.currentTarget.checked ? "1" : null }))}
        />
        Complete rows only
      </label>
      <ColumnMenu table={table} choice={choice} />
      {groups.length > 0 && (
        <button
          type="button"
          onClick={() => navigate(withQuery({ closed: choice.closed.size > 0 ? [] : groups }))}
        >
          {choice.closed.size > 0 ? "Unfold groups" : "Fold groups"}
        </button>
      )}
      {children}
      <span role="status" class="muted">
        {read < total && (choice.find || choice.complete || choice.only || choice.order.column !== null)
          ? `Reading rows: ${whole(read)} of ${whole(total)}`
          : shown < total
            ? `${whole(shown)} of ${plural(total, "row")}`
            : isLong && `${plural(total, "row")}; the browser's search finds only visible ones`}
      </span>
      {(shown < total || choice.without.size > 0) && read === total && (
        <Link href={withQuery({ find: null, complete: null, without: [], brush: [] })}>Show all</Link>
      )}
    </div>
  );
}

function ColumnMenu({ table, choice }: { table: Table; choice: Choice }) {
  const words: Record<Part, string> = {
    sd: "± s.d.",
    n: "n (seeds)",
    delta: "Δ (difference from the baseline)",
    paper: "the paper's value",
    interval: `${levelOf(table)} interval`,
  };
  const sampled = table.columns.some(isSampled);
  const there: Record<Part, boolean> = {
    sd: sampled,
    n: sampled,
    delta: sampled && compares(table),
    paper: table.columns.some((column) => column.has_paper && column.kind !== "KIND_PRINTED"),
    interval: sampled && !table.pivoted,
  };
  const flip = <T,>(all: ReadonlySet<T>, one: T): Set<T> => {
    const next = new Set(all);
    if (!next.delete(one)) next.add(one);
    return next;
  };
  const hidden = table.columns.filter((column) => choice.without.has(column.name)).length;
  return (
    <Menu title={hidden > 0 ? `Columns (${hidden} hidden)` : "Columns"}>
      {() => (
        <>
          <fieldset>
            <legend>Columns</legend>
            {table.columns.map((column) => (
              <label key={column.name}>
                <input
                  type="checkbox"
                  checked={!choice.without.has(column.name)}
                  onChange={() => navigate(withQuery({ without: [...flip(choice.without, column.name)] }))}
                />
                <span class="name" title={headingOf(column, table.pivot)}>
                  {headingOf(column, table.pivot)}
                </span>
              </label>
            ))}
          </fieldset>
          <fieldset>
            <legend>Show in each</legend>
            {kParts
              .filter((part) => there[part])
              .map((part) => (
                <label key={part}>
                  <input
                    type="checkbox"
                    checked={choice.parts.has(part)}
                    onChange={() => navigate(withQuery({ parts: partsText(flip(choice.parts, part)) }))}
                  />
                  {words[part]}
                </label>
              ))}
          </fieldset>
        </>
      )}
    </Menu>
  );
}
