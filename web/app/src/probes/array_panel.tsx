// SPDX-License-Identifier: Apache-2.0
import { useMemo, useState } from "preact/hooks";
import { plural, whole } from "../format";
import { chosenAxes, gridOf, shapeOf, type Grid } from "./array";
import { short, unitOf, type FoundArray } from "./found";
import { HeatMap } from "./heat_map";
import { LineChart } from "./line_chart";

/** Cells of one map or table. */
const kMost = 16_384;

/** An array as lines or as a heat map, and as a table. Of more than two axes a place of each of the others is chosen. */
export function ArrayPanel({ probe, array, of = "" }: { probe: string; array: FoundArray; of?: string }) {
  const [asTable, setAsTable] = useState(array.axes[0]?.name === "class"); // names, of which no order is meant
  const [at, setAt] = useState<number[]>(() => array.axes.map(() => 0));
  const shape = useMemo(() => shapeOf(array), [array]);
  const axes = chosenAxes(array, shape);
  const held = at.map((place, i) => Math.min(place, array.axes[i]!.places.length - 1));
  const grid = useMemo(() => gridOf(array, shape, held), [array, shape, held.join()]);
  const unit = unitOf(probe, array.name);
  const place = axes.map((i) => `${array.axes[i]!.name} ${array.axes[i]!.places[held[i]!]}`);
  const title = [array.name, ...place].join(", ");
  const isLarge = grid.rows.length * grid.columns.length > kMost;
  const switchText = !asTable ? "Show as table" : shape.kind === "lines" ? "Show as chart" : "Show as map";
  return (
    <figure class="chart-panel probe-array">
      <figcaption>
        <span class="chart-title" title={array.name}>
          {array.name}
          {unit && ` (${unit})`}
        </span>
        <button
          type="button"
          class="quiet"
          aria-pressed={asTable}
          aria-label={`${switchText}: ${array.name}${of}`}
          onClick={() => setAsTable(!asTable)}
        >
          {switchText}
        </button>
      </figcaption>
      {axes.some((i) => array.axes[i]!.places.length > 1) && (
        <div class="controls probe-places" role="group" aria-label={`Which ${array.name}${of}`}>
          {axes.map((i) => (
            <label key={i}>
              {array.axes[i]!.name}
              <select
                value={held[i]}
                onChange={(event) => {
                  const next = Number(event.currentTarget.value);
                  setAt(held.map((old, axis) => (axis === i ? next : old)));
                }}
              >
                {array.axes[i]!.places.map((name, value) => (
                  <option key={value} value={value}>
                    {name}
                  </option>
                ))}
              </select>
            </label>
          ))}
        </div>
      )}
      {isLarge ? (
        <p class="muted">
          {whole(grid.rows.length)} by {plural(grid.columns.length, "number")}: too many to show here. The
          JSON file has them.
        </p>
      ) : asTable ? (
        <GridTable title={title + of} grid={grid} />
      ) : shape.kind === "lines" && grid.rows.length > 1 ? (
        <LineChart title={title} grid={grid} unit={unit} />
      ) : shape.kind === "lines" ? (
        <GridTable title={title + of} grid={grid} />
      ) : (
        <HeatMap title={title} grid={grid} unit={unit} />
      )}
    </figure>
  );
}

function GridTable({ title, grid }: { title: string; grid: Grid }) {
  return (
    <div class="scroll chart-table" tabIndex={0} role="region" aria-label={`${title} as a table`}>
      <table>
        <caption class="sr-only">{title}</caption>
        <thead>
          <tr>
            <th scope="col">
              {grid.rowName}
              {grid.columnName && ` \\ ${grid.columnName}`}
            </th>
            {grid.columns.map((name, column) => (
              <th scope="col" class="num" key={column}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {grid.rows.map((name, row) => (
            <tr key={row}>
              <th scope="row">{name}</th>
              {grid.values[row]!.map((value, column) => (
                <td class="num" key={column}>
                  {short(value)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
