// SPDX-License-Identifier: Apache-2.0
import { SortHead, type Order } from "../../../../components/sort";
import type { Column, Table } from "../../../../generated/ablate";
import { headingOf, isSampled, levelOf, partsOf, type Part, type Parts } from "./columns";

/** A line's runs, each for itself, or how many are in each state. */
export type RunsShown = "listed" | "counted";

interface Props {
  table: Table;
  /** Those of the table that are shown. */
  columns: Column[];
  parts: Parts;
  order: Order;
  runs: RunsShown | undefined;
}

/** Two lines of headings: columns, and what of each stands below. */
export function Head({ table, columns, parts, order, runs }: Props) {
  const spans = columns.map((column) => 1 + partsOf(column, table, parts).length);
  const twoLines = spans.some((span) => span > 1);
  const height = twoLines ? 2 : 1;
  return (
    <thead>
      <tr>
        <SortHead order={order} column="row" rowSpan={height}>
          Row
        </SortHead>
        {columns.map((column, i) => {
          const title = headingOf(column, table.pivot);
          const level = column.level ? "level-head" : "";
          return spans[i] === 1 ? (
            <SortHead
              key={column.name}
              order={order}
              column={column.name}
              rowSpan={height}
              class={`group ${level}`}
              title={`${title}\n${column.source}`}
              numeric={column.kind !== "KIND_SETTING"}
              highFirst={column.better === "higher"}
            >
              {title}
            </SortHead>
          ) : (
            <th
              key={column.name}
              scope="colgroup"
              colSpan={spans[i]!}
              class={`group group-head ${level}`}
              title={`${title}\n${column.source}`}
            >
              {title}
            </th>
          );
        })}
        {runs && (
          <th scope="col" rowSpan={height} class="group">
            {runs === "counted" ? "Runs by state" : "Runs by seed"}
          </th>
        )}
      </tr>
      {twoLines && (
        <tr>
          {columns.map((column, i) =>
            spans[i] === 1 ? null : (
              <ColumnParts key={column.name} table={table} column={column} parts={parts} order={order} />
            ),
          )}
        </tr>
      )}
    </thead>
  );
}

function ColumnParts({
  table,
  column,
  parts,
  order,
}: Pick<Props, "table" | "parts" | "order"> & { column: Column }) {
  const words: Record<Exclude<Part, "sd" | "paper">, string> = {
    n: "n",
    delta: "Δ",
    interval: `${levelOf(table)} interval`,
  };
  const value = !isSampled(column) ? "here" : parts.has("sd") ? "mean ± s.d." : "mean";
  return (
    <>
      <SortHead
        order={order}
        column={column.name}
        numeric
        class="group"
        highFirst={column.better === "higher"}
      >
        <span class="sr-only">{column.heading}, </span>
        {value}
      </SortHead>
      {partsOf(column, table, parts).map((part) =>
        part === "paper" ? (
          <SortHead
            key={part}
            order={order}
            column={`${column.name}.paper`}
            numeric
            class="paper"
            highFirst={column.better === "higher"}
          >
            {table.paper_heading || "paper"}
          </SortHead>
        ) : (
          <th key={part} scope="col" class="num">
            {words[part as keyof typeof words]}
          </th>
        ),
      )}
    </>
  );
}
