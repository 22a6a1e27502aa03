// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import { Notice } from "../../../../components/notice";
import { plural } from "../../../../format";
import { Link, navigate, withQuery } from "../../../../router";
import { brushOf, withBrush, type Brush } from "./brush";
import type { ChartChoice } from "./choice";
import { inkOn, rampAt, shareOf } from "./colours";
import { kWhy, type DataTable, type Datum } from "./data";
import { ChartFigure, Legend, useColours } from "./figure";
import type { Axis, Frame } from "./frame";
import { heatOf, type Heat, type HeatCell } from "./heat";
import { lit } from "./lit";

interface Props {
  frame: Frame;
  of: Axis;
  across: Axis;
  down: Axis;
  choice: ChartChoice;
  brushes: readonly Brush[];
}

/** A cell where two settings meet, coloured by the mean of a metric; a press keeps the cell's rows. */
export function HeatMap({ frame, of, across, down, choice, brushes }: Props) {
  const { scale } = useColours();
  const heat = useMemo(
    () => heatOf(frame, of, across, down, choice.average),
    [frame, of, across, down, choice.average],
  );
  if (heat.why)
    return (
      <Notice kind="empty" title={heat.why}>
        Choose another setting.
      </Notice>
    );
  const title = `${of.title} by ${across.title} and ${down.title}`;
  const isBrushed = (axis: Axis, level: string): boolean => {
    const brush = brushOf(brushes, axis.key);
    return brush?.kind === "in" && brush.levels.length === 1 && brush.levels[0] === level;
  };
  const press = (x: string, y: string): void => {
    const here = isBrushed(across, x) && isBrushed(down, y);
    const others = brushes.filter((brush) => brush.kind === "rows" || brush.axis !== across.key);
    const only = (axis: Axis, level: string): Brush | undefined =>
      here ? undefined : { kind: "in", axis: axis.key, levels: [level] };
    const next = withBrush(others, down.key, only(down, y));
    const more = only(across, x);
    navigate(withQuery({ brush: more ? [...next, ...withBrush([], "", more)] : next }));
  };
  return (
    <ChartFigure
      title={title}
      notes={heat.notes}
      asTable={choice.asTable}
      data={() => tableOf(frame, of, across, down, heat)}
    >
      {heat.asks && (
        <Notice kind="empty" title="Some cells have several rows.">
          <p>They differ in other settings. Brush these in the parallel axes, or</p>
          <Link class="button" href={withQuery({ "chart-mean": null })}>
            Average over the other settings
          </Link>
        </Notice>
      )}
      <div
        class="scroll heat-box"
        tabIndex={0}
        role="region"
        aria-label={`Heat map of ${title}`}
        onPointerLeave={() => lit.set([])}
      >
        <table class="heat">
          <caption class="sr-only">
            {title}. A cell's button keeps only its rows in the ablation table.
          </caption>
          <thead>
            <tr>
              <td />
              <th scope="colgroup" colSpan={heat.across.length} class="heat-title">
                <bdi class="name">{across.title}</bdi>
              </th>
            </tr>
            <tr>
              <th scope="col" class="heat-title">
                <bdi class="name">{down.title}</bdi>
              </th>
              {heat.across.map((level) => (
                <th scope="col" key={level} title={level}>
                  <bdi class="heat-level">{level}</bdi>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {heat.down.map((level, j) => (
              <tr key={level}>
                <th scope="row" title={level}>
                  <bdi class="name">{level}</bdi>
                </th>
                {heat.across.map((x, i) => (
                  <Cell
                    key={x}
                    frame={frame}
                    of={of}
                    cell={heat.cells[j]![i]!}
                    color={(value) => rampAt(scale, shareOf(value, heat.low, heat.high))}
                    words={`${across.title} ${x}, ${down.title} ${level}`}
                    pressed={isBrushed(across, x) && isBrushed(down, level)}
                    onPress={() => press(x, level)}
                  />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Legend axis={of} frame={frame} low={heat.low} high={heat.high} />
    </ChartFigure>
  );
}

interface CellProps {
  frame: Frame;
  of: Axis;
  cell: HeatCell;
  color: (value: number) => string;
  words: string;
  pressed: boolean;
  onPress: () => void;
}

function Cell({ frame, of, cell, color, words, pressed, onPress }: CellProps) {
  const { mean } = cell;
  const back = mean === undefined ? undefined : color(mean);
  const point = (): void => lit.set(cell.rows.map((row) => frame.rows[row]!.id));
  const text = mean === undefined ? cell.none : frame.text(of, mean);
  const means = mean !== undefined && cell.rows.length > 1 ? `mean of ${plural(cell.n, "row")}` : "";
  const part = cell.n < cell.rows.length && mean !== undefined;
  const seen = part ? `${text}*` : text; // its name has it as it is seen
  if (cell.rows.length === 0)
    return (
      <td class="heat-none">
        <span class="heat-empty">{cell.none}</span>
      </td>
    );
  return (
    <td class={mean === undefined ? "heat-none" : ""}>
      <button
        type="button"
        class="num"
        aria-pressed={pressed}
        aria-label={`${words}: ${seen}${means && ` n ${cell.n}, ${means}`}${part ? ` of ${cell.rows.length}` : ""}`}
        title={[words, means && `${means}${part ? ` of ${cell.rows.length}` : ""}`]
          .filter(Boolean)
          .join("\n")}
        style={back ? { background: back, color: inkOn(back) } : {}}
        onPointerEnter={point}
        onFocus={point}
        onBlur={() => lit.set([])}
        onClick={onPress}
      >
        {seen} {means && <small>n {cell.n}</small>}
      </button>
    </td>
  );
}

function tableOf(frame: Frame, of: Axis, across: Axis, down: Axis, heat: Heat): DataTable {
  return {
    head: [down.title, ...heat.across],
    rows: heat.down.map((level, j) => [
      level,
      ...heat.cells[j]!.map(({ mean, n, rows, none }) =>
        mean === undefined ? none : `${frame.text(of, mean)}${rows.length > 1 ? ` (n ${n})` : ""}`,
      ),
    ]),
    file: {
      head: [down.title, across.title, of.title, "n", "rows", kWhy],
      rows: heat.cells.flatMap((line, j) =>
        line.map(({ mean, n, rows, none }, i): Datum[] => [
          heat.down[j]!,
          heat.across[i]!,
          [mean, ""],
          String(n),
          String(rows.length),
          none,
        ]),
      ),
    },
  };
}
