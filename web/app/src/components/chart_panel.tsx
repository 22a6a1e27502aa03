// SPDX-License-Identifier: Apache-2.0
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useBrief } from "../brief";
import { Chart, type ChartScales, type Cursor } from "../chart";
import { kAxes } from "../curves/axis";
import { csvOf, fileName } from "../curves/csv";
import { nearLines, type Near } from "../curves/nearest";
import { moved, scaled, type Zoom } from "../curves/view";
import { plain, plural, whole } from "../format";
import { breakText, extentOf, lastOf, valueAt, type Line, type Plot } from "../series";
import { saveFile } from "../save_file";
import { Swatch } from "./swatch";

interface Props {
  title: string;
  plot: Plot;
  sync: string;
  hidden?: ReadonlySet<string>;
  /** A chart of few lines carries its own key; a group of charts has one beside it. */
  ownKey?: boolean;
  /** Which axes are logarithmic, and the range that is shown. Without: linear, and the chart keeps its own zoom. */
  scales?: ChartScales;
  onZoom?: (zoom: Zoom | undefined) => void;
}

const kNone: ReadonlySet<string> = new Set();
const kPlain: ChartScales = { logX: false, logY: false, zoom: undefined };

/** A chart: the values near the cursor, a sentence for screen readers, and the same points as a table and as CSV. */
export function ChartPanel({ title, plot, sync, hidden = kNone, ownKey = false, scales, onZoom }: Props) {
  const [cursor, setCursor] = useState<Cursor | null>(null);
  const [asTable, setAsTable] = useState(false);
  const [ownZoom, setOwnZoom] = useState<Zoom | undefined>();
  const seen = useMemo(() => scales ?? { ...kPlain, zoom: ownZoom }, [scales, ownZoom]);
  const zoomTo = onZoom ?? setOwnZoom;
  const zoom = useRef(zoomTo);
  zoom.current = zoomTo;
  const element = useRef<HTMLDivElement>(null);
  const chart = useRef<Chart | undefined>(undefined);
  useEffect(() => {
    if (asTable || !element.current) return;
    chart.current = new Chart(element.current, {
      sync,
      onCursor: setCursor,
      onZoom: (to) => zoom.current(to),
    });
    return () => {
      chart.current?.destroy();
      chart.current = undefined;
    };
  }, [asTable, sync]);
  useEffect(() => chart.current?.show({ ...seen, plot, hidden }), [asTable, sync, plot, hidden, seen]);

  const visible = useMemo(() => plot.lines.filter((line) => !hidden.has(line.id)), [plot, hidden]);
  const near = cursor && !asTable ? nearLines(visible, cursor) : [];
  useEffect(() => {
    chart.current?.point(
      near.slice(0, kMostNear).flatMap(({ line, index }) => {
        const y = line.values[index];
        const isSeen = typeof y === "number" && !(seen.logY && y <= 0) && !(seen.logX && line.x[index]! <= 0);
        return isSeen ? [{ x: line.x[index]!, y, color: line.look.color }] : [];
      }),
    );
  });
  const all = extentOf(visible);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (!all || event.ctrlKey || event.metaKey || event.altKey) return;
    const from = seen.zoom ?? all;
    const to = {
      "+": () => scaled(from, all, 0.5),
      "=": () => scaled(from, all, 0.5),
      "-": () => scaled(from, all, 2),
      ArrowRight: () => moved(from, all, 1),
      ArrowLeft: () => moved(from, all, -1),
      "0": () => undefined,
      Escape: () => undefined,
    }[event.key];
    if (!to) return;
    event.preventDefault();
    zoomTo(to());
  };
  return (
    <figure class="chart-panel">
      <figcaption>
        <span class="chart-title" title={title}>
          {title}
        </span>
        <span class="chart-cursor num" aria-hidden="true">
          {cursor && kAxes[plot.axis].at(cursor.x)}
        </span>
        <CopyCsv csv={() => csvOf(title, plot, visible, seen.zoom)} name={title} />
        <button type="button" class="quiet" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
          {asTable ? "Show as chart" : "Show as table"}
        </button>
      </figcaption>
      {asTable ? (
        <PointTable title={title} plot={plot} lines={visible} zoom={seen.zoom} />
      ) : (
        <div class="chart-frame">
          <div
            class="chart"
            role="img"
            tabIndex={0}
            aria-label={sentence(title, plot, visible)}
            aria-keyshortcuts="+ - 0 ArrowLeft ArrowRight"
            onKeyDown={onKeyDown}
            ref={element}
          />
          {near.length > 0 && cursor && (
            <NearList near={near} plot={plot} onLeft={cursor.left > cursor.width / 2} />
          )}
        </div>
      )}
      {!asTable && ownKey && (
        <ul class="chart-key">
          {visible.map((line) => (
            <li key={line.label}>
              <Swatch look={line.look} />
              <span class="chart-key-name" title={line.label}>
                {line.label}
              </span>
              <span class="num">{withUnit(newest(line), plot)}</span>
            </li>
          ))}
        </ul>
      )}
      <Notes lines={visible} scales={seen} axis={kAxes[plot.axis].unit} />
      <Breaks lines={visible} />
    </figure>
  );
}

const withUnit = (text: string, { unit }: Plot): string => (unit && text !== "–" ? `${text} ${unit}` : text);

function newest(line: Line): string {
  const end = lastOf(line);
  return end ? valueAt(line, end.index) : "–";
}

const kMostNear = 6;

/** With enough digits to compare two values. */
function exact(value: number): string {
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e7)
    ? value.toExponential(6)
    : String(Number(value.toPrecision(8)));
}

/** Lines near the cursor with their own points, the nearest first. */
function NearList({ near, plot, onLeft }: { near: Near[]; plot: Plot; onLeft: boolean }) {
  const value = ({ line, index, raw }: Near): string => {
    const here = line.values[index];
    if (typeof here !== "number" || line.n || line.band) return valueAt(line, index);
    if (!line.raw) return exact(here);
    return typeof raw === "number" ? `${exact(here)}, raw ${exact(raw)}` : exact(here);
  };
  const place = ({ line, index }: Near): string => {
    const step = line.steps[index];
    return typeof step === "number" ? whole(step) : kAxes[plot.axis].tick(line.x[index]!);
  };
  return (
    // beside the cursor's half of the chart, so that it does not cover what is pointed at
    <ul class={`chart-key chart-key-floating ${onLeft ? "chart-key-left" : ""}`} aria-hidden="true">
      {near.slice(0, kMostNear).map((each) => (
        <li key={each.line.label}>
          <Swatch look={each.line.look} />
          <span class="chart-key-name">{each.line.label}</span>
          <span class="num">{withUnit(value(each), plot)}</span>
          <span class="num muted">{place(each)}</span>
        </li>
      ))}
      {near.length > kMostNear && (
        <li class="chart-key-more">
          <span>and {whole(near.length - kMostNear)} more</span>
        </li>
      )}
    </ul>
  );
}

/** What the chart leaves out, or shows otherwise. */
function Notes({ lines, scales, axis }: { lines: Line[]; scales: ChartScales; axis: string }) {
  const steps = Math.max(0, ...lines.map((line) => line.bucketSteps));
  const points = lines.reduce((sum, line) => sum + line.points, 0);
  const means = lines.some((line) => line.n);
  const smooth = lines.some((line) => line.raw);
  const { zoom } = scales;
  const seen = (x: number): boolean => !zoom || (x >= zoom.from && x <= zoom.to);
  const low = scales.logY ? count(lines, (x, y) => seen(x) && typeof y === "number" && y <= 0) : 0;
  const early = scales.logX ? count(lines, (x) => seen(x) && x <= 0) : 0;
  const bands = scales.logY
    ? lines.some(({ band }) => band?.low.some((y) => typeof y === "number" && y <= 0))
    : false;
  const notes = [
    steps > 0 &&
      (means || smooth
        ? `${means ? "Means of" : "Smoothed from"} ${plural(points, "point")}, each run in means of ${whole(steps)} steps or fewer`
        : `${plural(points, "point")}: the first, lowest, highest and last of every ${whole(steps)} steps or fewer are drawn`) +
        "; zoom in for every point",
    low > 0 && `${plural(low, "value")} of 0 or less ${low === 1 ? "is" : "are"} not on the logarithmic axis`,
    early > 0 &&
      `${plural(early, "point")} at ${axis} 0 ${early === 1 ? "is" : "are"} not on the logarithmic axis`,
    bands && "The band is cut off at 0",
  ].filter((note) => note !== false);
  if (notes.length === 0) return null;
  return (
    <p class="chart-notes muted">
      {notes.map((note) => (
        <span key={note}>{note}. </span>
      ))}
    </p>
  );
}

function count(lines: Line[], left: (x: number, y: number | null | undefined) => boolean): number {
  return lines.reduce((sum, { x, values }) => sum + x.filter((place, i) => left(place, values[i])).length, 0);
}

const kMostBreaks = 6;

/** The crosses of the chart in words: where a run's values stop being finite. */
function Breaks({ lines }: { lines: Line[] }) {
  const all = lines.flatMap((line) => line.breaks.map((lost) => ({ line, lost })));
  if (all.length === 0) return null;
  const points = lines.reduce((sum, line) => sum + line.notFinite, 0);
  return (
    <>
      <p class="chart-breaks">{plural(points, "point")} not finite, the first of each range marked ✕:</p>
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
    </>
  );
}

function sentence(title: string, plot: Plot, lines: Line[]): string {
  const last = extentOf(lines)?.to;
  if (last === undefined) return `Line chart of ${title}, no points yet.`;
  const ends = lines.slice(0, 8).map((line) => {
    const end = lastOf(line);
    const mean = line.n ? ` (mean of ${line.runs})` : "";
    const lost = line.breaks[0] ? `, ${breakText(line.breaks[0])}` : "";
    return `${line.label} ${withUnit(plain(end?.value), plot)}${mean}${lost}`;
  });
  const over = plot.axis === "step" ? plural(last, "optimiser step") : kAxes[plot.axis].at(last);
  return `Line chart of ${title} over ${over}, ${plural(lines.length, "line")}; newest values: ${ends.join("; ")}.`;
}

const kMostTableRows = 40;

/** Up to 40 places of the axis, and of each line its last point up to there. */
function PointTable({
  title,
  plot,
  lines,
  zoom,
}: {
  title: string;
  plot: Plot;
  lines: Line[];
  zoom: Zoom | undefined;
}) {
  const axis = kAxes[plot.axis];
  const places = useMemo(() => {
    const all = [...new Set(lines.flatMap(({ x }) => x))].sort((a, b) => a - b);
    const seen = zoom ? all.filter((x) => x >= zoom.from && x <= zoom.to) : all;
    const stride = Math.max(1, Math.ceil(seen.length / kMostTableRows));
    return {
      shown: seen.filter((_, i) => i % stride === 0 || i === seen.length - 1),
      stride,
      of: seen.length,
    };
  }, [lines, zoom]);
  const at = (line: Line, row: number): string => {
    const [before, place] = [places.shown[row - 1] ?? zoom?.from ?? -Infinity, places.shown[row]!];
    const index = line.x.findLastIndex((x) => x <= place);
    return index < 0 || (row > 0 ? line.x[index]! <= before : line.x[index]! < before)
      ? "–"
      : valueAt(line, index);
  };
  return (
    <div class="scroll chart-table" tabIndex={0} role="region" aria-label={`${title} as a table`}>
      <table>
        <caption class="sr-only">
          {title}
          {places.stride > 1 &&
            `, one in ${places.stride} of ${whole(places.of)} places: of each line the last point up to there`}
        </caption>
        <thead>
          <tr>
            <th scope="col" class="num">
              {axis.title.toLowerCase()}
            </th>
            {lines.map((line) => (
              <th scope="col" class="num" key={line.label} title={line.label}>
                {line.label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {places.shown.map((x, row) => (
            <tr key={x}>
              <th scope="row" class="num">
                {plot.axis === "step" ? whole(x) : axis.tick(Number(x.toPrecision(6)))}
              </th>
              {lines.map((line) => (
                <td class="num" key={line.label}>
                  {at(line, row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What is shown, into the clipboard and into a file. */
export function CopyCsv({ csv, name }: { csv: () => string; name: string }) {
  const [said, setSaid] = useBrief("");
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(csv());
      setSaid("Copied");
    } catch {
      setSaid("The browser blocks copying: download instead");
    }
  };
  const download = (): void => {
    saveFile(`${fileName(name)}.csv`, [csv()], "text/csv");
  };
  return (
    <span class="chart-csv">
      <span class="muted" role="status">
        {said}
      </span>
      {navigator.clipboard && (
        <button type="button" class="quiet" aria-label={`Copy CSV of ${name}`} onClick={() => void copy()}>
          Copy CSV
        </button>
      )}
      <button type="button" class="quiet" aria-label={`CSV of ${name}`} title="Download" onClick={download}>
        CSV
      </button>
    </span>
  );
}
