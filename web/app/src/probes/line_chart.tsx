// SPDX-License-Identifier: Apache-2.0
import { Swatch } from "../components/swatch";
import { plain, tick } from "../format";
import { lookOf } from "../palette";
import { useWidth } from "../width";
import { rangeOf, ticksOf, type Grid } from "./array";
import { short, withUnit } from "./found";

const kHeight = 230;
const kRoom = { top: 10, right: 14, bottom: 42 };
const kLetter = 7; // pixels of a digit

/** Lines over the places of an axis, such as layers. */
export function LineChart({ title, grid, unit }: { title: string; grid: Grid; unit: string }) {
  const { element, width } = useWidth<HTMLDivElement>();
  const range = rangeOf(grid.values.flat());
  return (
    <>
      <div class="probe-chart" ref={element} role="img" aria-label={sentence(title, grid, unit)}>
        {width > 0 && range && <Drawing grid={grid} unit={unit} width={width} range={range} />}
      </div>
      {grid.columns.length > 1 && (
        <ul class="chart-key probe-key">
          {grid.columns.map((name, i) => (
            <li key={i}>
              <Swatch look={lookOf(i)} />
              <span class="chart-key-name">
                {grid.columnName} {name}
              </span>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function Drawing(props: { grid: Grid; unit: string; width: number; range: [number, number] }) {
  const { grid, unit, width } = props;
  const [low, high] = props.range;
  // what is far from zero is not squeezed for it
  const ticks = ticksOf(low > 0 && low < high / 2 ? 0 : low, high, 4);
  const [bottom, top] = [ticks[0]!, ticks.at(-1)!];
  const isBytes = unit === "bytes";
  const texts = ticks.map((value) => (isBytes ? withUnit(value, unit) : tick(value)));
  const left = 16 + kLetter * Math.max(...texts.map((text) => text.length));
  const inner = { width: width - left - kRoom.right, height: kHeight - kRoom.top - kRoom.bottom };
  const count = grid.rows.length;
  const x = (row: number): number =>
    left + (count === 1 ? inner.width / 2 : 8 + ((inner.width - 16) * row) / (count - 1));
  const y = (value: number): number => kRoom.top + inner.height * (1 - (value - bottom) / (top - bottom));
  const wide = 12 + kLetter * Math.max(...grid.rows.map((name) => name.length));
  const stride = Math.max(1, Math.ceil((wide * count) / Math.max(1, inner.width)));
  return (
    <svg width={width} height={kHeight} aria-hidden="true">
      {ticks.map((value, i) => (
        <g key={value}>
          <path class="probe-grid" d={`M${left} ${y(value)}h${inner.width}`} />
          <text x={left - 8} y={y(value)} dy="0.32em" text-anchor="end">
            {texts[i]}
          </text>
        </g>
      ))}
      {grid.rows.map(
        (name, row) =>
          row % stride === 0 && (
            <text key={row} x={x(row)} y={kHeight - kRoom.bottom + 17} text-anchor="middle">
              {name}
            </text>
          ),
      )}
      <text x={left + inner.width / 2} y={kHeight - 5} text-anchor="middle" class="probe-axis">
        {grid.rowName}
      </text>
      {grid.columns.map((name, column) => {
        const { color, dash } = lookOf(column);
        const points = grid.values.map((row) => row[column]!);
        return (
          <g key={column} stroke={`var(${color})`} fill={`var(${color})`}>
            <path d={pathOf(points, x, y)} fill="none" stroke-width="2" stroke-dasharray={dash.join(" ")} />
            {points.map(
              (value, row) =>
                Number.isFinite(value) && (
                  <circle key={row} cx={x(row)} cy={y(value)} r={count > 40 ? 1.6 : 3}>
                    <title>
                      {`${grid.rowName} ${grid.rows[row]}${grid.columns.length > 1 ? `, ${name}` : ""}: ${withUnit(value, unit)}`}
                    </title>
                  </circle>
                ),
            )}
          </g>
        );
      })}
    </svg>
  );
}

/** The line breaks where there is no number. */
function pathOf(points: number[], x: (row: number) => number, y: (value: number) => number): string {
  return points
    .map((value, row) =>
      Number.isFinite(value)
        ? `${Number.isFinite(points[row - 1] ?? NaN) ? "L" : "M"}${x(row).toFixed(1)} ${y(value).toFixed(1)}`
        : "",
    )
    .join("");
}

function sentence(title: string, grid: Grid, unit: string): string {
  const lines = grid.columns.slice(0, 8).map((name, column) => {
    const points = grid.values.map((row) => row[column]!);
    const range = rangeOf(points);
    const what = grid.columns.length > 1 ? `${name} ` : "";
    return range
      ? `${what}from ${short(points[0]!)} to ${short(points.at(-1)!)}, lowest ${plain(range[0])}, highest ${plain(range[1])}`
      : `${what}no numbers`;
  });
  return `Line chart of ${title}${unit ? ` in ${unit}` : ""} by ${grid.rowName}, ${grid.rows[0]} to ${grid.rows.at(-1)}: ${lines.join("; ")}.`;
}
