// SPDX-License-Identifier: Apache-2.0
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { plain } from "../format";
import { rangeOf, type Grid } from "./array";
import { short, withUnit } from "./found";
import { css, inkOn, scaleFor, type Scale } from "./scale";

/** Beyond this a cell has no room for its number. */
const kMostWithText = 12;

/** Two axes as colours: with the numbers in them as a table, and larger ones as a picture. */
export function HeatMap({ title, grid, unit }: { title: string; grid: Grid; unit: string }) {
  const range = rangeOf(grid.values.flat());
  if (!range) return <p class="muted">No numbers here.</p>;
  // similarities are all held against the same scale; what a head attends to is not
  const isSimilarity = isSquare(grid) && grid.columnName !== "column";
  const scale = scaleFor(...range, isSimilarity);
  const small = grid.columns.length <= kMostWithText && grid.rows.length <= 2 * kMostWithText;
  return (
    <>
      {small ? (
        <Cells title={title} grid={grid} scale={scale} />
      ) : (
        <Pixels title={title} grid={grid} scale={scale} range={range} />
      )}
      <p class="heat-key num" aria-hidden="true">
        {withUnit(scale.low, unit)}
        <span style={{ background: scale.gradient }} />
        {withUnit(scale.high, unit)}
      </p>
    </>
  );
}

const isSquare = ({ rows, columns }: Grid): boolean => rows.join("\n") === columns.join("\n");

function Cells({ title, grid, scale }: { title: string; grid: Grid; scale: Scale }) {
  return (
    <div class="scroll">
      <table class="heat">
        <caption class="sr-only">
          {title}: {grid.rowName} by {grid.columnName}
        </caption>
        <thead>
          <tr>
            <td />
            {grid.columns.map((name, column) => (
              <th key={column} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {grid.rows.map((name, row) => (
            <tr key={row}>
              <th scope="row">{name}</th>
              {grid.values[row]!.map((value, column) => {
                const color = Number.isFinite(value) ? scale.color(value) : undefined;
                return (
                  <td
                    key={column}
                    class={color ? "num" : "num heat-none"}
                    style={color && { background: css(color), color: inkOn(color) }}
                    title={`${name}, ${grid.columns[column]}: ${short(value)}`}
                  >
                    {brief(value)}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Two figures or so, which is what a cell has room for. */
function brief(value: number): string {
  const size = Math.abs(value);
  if (!Number.isFinite(value) || (size !== 0 && size < 0.005) || size >= 1000) return short(value);
  return value.toFixed(size < 10 ? 2 : size < 100 ? 1 : 0).replace("-", "\u2212");
}

const kSide = 300; // pixels, about
const kLargestCell = 18;

function Pixels(props: { title: string; grid: Grid; scale: Scale; range: [number, number] }) {
  const { title, grid, scale, range } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const [under, setUnder] = useState("");
  const [height, width] = [grid.rows.length, grid.columns.length];
  const cell = Math.max(1, Math.min(kLargestCell, Math.floor(kSide / Math.max(width, height))));
  useLayoutEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context) return;
    const image = context.createImageData(width, height);
    grid.values.flat().forEach((value, i) => {
      if (Number.isFinite(value)) image.data.set([...scale.color(value), 255], 4 * i);
    });
    context.putImageData(image, 0, 0);
  }, [grid, width, height]);
  const onMove = (event: PointerEvent & { currentTarget: HTMLCanvasElement }): void => {
    const box = event.currentTarget.getBoundingClientRect();
    const column = Math.min(width - 1, Math.floor(((event.clientX - box.left) / box.width) * width));
    const row = Math.min(height - 1, Math.floor(((event.clientY - box.top) / box.height) * height));
    const value = grid.values[row]?.[column];
    if (value === undefined) return;
    setUnder(
      `${grid.rowName} ${grid.rows[row]}, ${grid.columnName} ${grid.columns[column]}: ${short(value)}`,
    );
  };
  return (
    <>
      <canvas
        class="heat-pixels"
        ref={canvas}
        width={width}
        height={height}
        style={{ width: `${width * cell}px` }}
        role="img"
        aria-label={`Heat map of ${title}, ${height} by ${width}: from ${plain(range[0])} to ${plain(range[1])}.`}
        onPointerMove={onMove}
        onPointerLeave={() => setUnder("")}
      />
      <p class="heat-under num muted" aria-hidden="true">
        {under || `${grid.rowName}s down, ${grid.columnName}s across`}
      </p>
    </>
  );
}
