// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from "preact/hooks";
import { Chart } from "../chart";
import { plain, plural, whole } from "../format";
import { breakText, lastOf, valueAt, type Line, type Plot } from "../series";
import { Swatch } from "./swatch";

interface Props {
  title: string;
  plot: Plot;
  sync: string;
  hidden?: ReadonlySet<string>;
  /** A chart of few lines carries its own key; a group of charts has one beside it. */
  ownKey?: boolean;
}

const kNone: ReadonlySet<string> = new Set();

/** A chart, its values under the cursor, what it shows in one sentence, and the same as a table. */
export function ChartPanel({ title, plot, sync, hidden = kNone, ownKey = false }: Props) {
  const [cursor, setCursor] = useState<number | null>(null);
  const [asTable, setAsTable] = useState(false);
  const element = useRef<HTMLDivElement>(null);
  const chart = useRef<Chart | undefined>(undefined);
  useEffect(() => {
    if (asTable || !element.current) return;
    chart.current = new Chart(element.current, { sync, onCursor: setCursor });
    return () => {
      chart.current?.destroy();
      chart.current = undefined;
    };
  }, [asTable, sync]);
  useEffect(() => chart.current?.show(plot, hidden), [asTable, sync, plot, hidden]);

  const visible = plot.lines.filter((line) => !hidden.has(line.id));
  const step = cursor === null ? undefined : plot.steps[cursor];
  // beside the cursor's half of the chart, so that it does not cover what is pointed at
  const onLeft = cursor !== null && cursor > plot.steps.length / 2;
  const keyClass = ownKey ? "chart-key" : `chart-key chart-key-floating ${onLeft ? "chart-key-left" : ""}`;
  return (
    <figure class="chart-panel">
      <figcaption>
        <span class="chart-title">{title}</span>
        <span class="chart-cursor num" aria-hidden="true">
          {step !== undefined && `step ${whole(step)}`}
        </span>
        <button type="button" class="quiet" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
          {asTable ? "Show as chart" : "Show as table"}
        </button>
      </figcaption>
      {asTable ? (
        <PointTable title={title} steps={plot.steps} lines={visible} />
      ) : (
        <div class="chart" role="img" aria-label={sentence(title, plot.steps, visible)} ref={element} />
      )}
      {!asTable && (ownKey || cursor !== null) && (
        <ul class={keyClass} aria-hidden={!ownKey}>
          {visible.map((line) => (
            <li key={line.id}>
              <Swatch look={line.look} />
              <span class="chart-key-name">{line.label}</span>
              <span class="num">{valueText(line, plot.steps, cursor)}</span>
            </li>
          ))}
        </ul>
      )}
      <Breaks lines={visible} />
    </figure>
  );
}

/** At the cursor, otherwise the newest. */
function valueText(line: Line, steps: number[], cursor: number | null): string {
  const index = cursor ?? lastOf(line)?.index;
  return index === undefined ? "–" : valueAt(line, index, steps[index]!);
}

const kMostBreaks = 6;

/** In words what the chart marks with a cross: runs whose values stop being finite. */
function Breaks({ lines }: { lines: Line[] }) {
  const all = lines.flatMap((line) => line.breaks.map((lost) => ({ line, lost })));
  if (all.length === 0) return null;
  return (
    <ul class="chart-breaks">
      {all.slice(0, kMostBreaks).map(({ line, lost }) => (
        <li key={`${line.id} ${lost.run} ${lost.from}`}>
          <span aria-hidden="true">✕ </span>
          {line.label === lost.run ? "" : `${line.label}: `}
          {breakText(lost)}
          {line.n && (lost.back === null ? "; the mean ends there" : "; the mean has a gap there")}
        </li>
      ))}
      {all.length > kMostBreaks && <li>and {plural(all.length - kMostBreaks, "more break")}</li>}
    </ul>
  );
}

function sentence(title: string, steps: number[], lines: Line[]): string {
  const last = steps[steps.length - 1];
  if (last === undefined || lines.length === 0) return `Line chart of ${title}, without points yet.`;
  const ends = lines.slice(0, 8).map((line) => {
    const end = lastOf(line);
    const mean = line.n ? ` (mean of ${line.runs})` : "";
    const lost = line.breaks[0] ? `, ${breakText(line.breaks[0])}` : "";
    return `${line.label} ${plain(end?.value)}${mean}${lost}`;
  });
  return `Line chart of ${title} over ${plural(last, "optimiser step")}, ${plural(lines.length, "line")}; newest values: ${ends.join("; ")}.`;
}

const kMostTableRows = 40;

function PointTable({ title, steps, lines }: { title: string; steps: number[]; lines: Line[] }) {
  const stride = Math.max(1, Math.ceil(steps.length / kMostTableRows));
  const shown = steps.map((_, i) => i).filter((i) => i % stride === 0 || i === steps.length - 1);
  return (
    <div class="scroll chart-table" tabIndex={0} role="region" aria-label={`${title} as a table`}>
      <table>
        <caption class="sr-only">
          {title}
          {stride > 1 && `, every ${stride}th of ${steps.length} points`}
        </caption>
        <thead>
          <tr>
            <th scope="col" class="num">
              step
            </th>
            {lines.map((line) => (
              <th scope="col" class="num" key={line.id}>
                {line.label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((i) => (
            <tr key={steps[i]}>
              <th scope="row" class="num">
                {whole(steps[i] ?? 0)}
              </th>
              {lines.map((line) => (
                <td class="num" key={line.id}>
                  {valueAt(line, i, steps[i]!)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
