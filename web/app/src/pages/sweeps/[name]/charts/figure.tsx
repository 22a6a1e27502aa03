// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useState } from "preact/hooks";
import { CopyCsv } from "../../../../components/chart_panel";
import { plural, whole } from "../../../../format";
import { Link, navigate, withQuery } from "../../../../router";
import { rampAt } from "./colours";
import { csvOfTable, type DataTable, type Datum } from "./data";
import type { Axis, Frame } from "./frame";

const shownText = (cell: Datum): string => (typeof cell === "string" ? cell : cell[1]) || "–";

const kMostTableRows = 300;

interface Props {
  title: string;
  /** What the chart leaves out, averages or takes for granted. */
  notes: (string | false)[];
  asTable: boolean;
  data: () => DataTable;
  children: ComponentChildren;
}

/** A chart with its notes, and the same numbers as a table and as CSV. */
export function ChartFigure({ title, notes, asTable, data, children }: Props) {
  const said = notes.filter(Boolean);
  return (
    <figure class="chart-panel">
      <figcaption>
        <span class="chart-title" title={title}>
          <bdi>{title}</bdi>
        </span>
        <span class="chart-cursor" />
        <CopyCsv csv={() => csvOfTable(data())} name={title} />
        <button
          type="button"
          class="quiet"
          aria-pressed={asTable}
          onClick={() => navigate(withQuery({ "chart-as": asTable ? null : "table" }))}
        >
          {asTable ? "Show as chart" : "Show as table"}
        </button>
      </figcaption>
      {asTable ? <Numbers title={title} data={data()} /> : children}
      {said.length > 0 && (
        <p class="charts-notes muted">
          {said.map((note) => (
            <span key={note}>
              <bdi>{note}</bdi>{" "}
            </span>
          ))}
        </p>
      )}
    </figure>
  );
}

function Numbers({ title, data }: { title: string; data: DataTable }) {
  const rows = data.rows.slice(0, kMostTableRows);
  return (
    <div class="scroll charts-table" tabIndex={0} role="region" aria-label={`${title} as a table`}>
      <table>
        <caption class={rows.length < data.rows.length ? "" : "sr-only"}>
          {title}
          {rows.length < data.rows.length &&
            `: the first ${whole(rows.length)} of ${plural(data.rows.length, "line")}; the CSV has all`}
        </caption>
        <thead>
          <tr>
            {data.head.map((text, i) => (
              <th scope="col" class={i > 0 ? "num" : ""} key={i}>
                <bdi>{text}</bdi>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((line, i) => (
            <tr key={i}>
              {line.map(shownText).map((text, j) =>
                j === 0 ? (
                  <th scope="row" key={j}>
                    <bdi class="name">{text}</bdi>
                  </th>
                ) : (
                  <td class="num" key={j}>
                    <bdi>{text}</bdi>
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** An element, to be set as a `ref`, and how wide it is in pixels; 0 before it is drawn. */
export function useWidth(): [(element: HTMLElement | null) => void, HTMLElement | null, number] {
  const [element, setElement] = useState<HTMLElement | null>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    if (!element) return;
    const look = (): void => setWidth(Math.floor(element.clientWidth));
    look();
    const sizes = new ResizeObserver(look);
    sizes.observe(element);
    return () => sizes.disconnect();
  }, [element]);
  return [setElement, element, width];
}

export interface Colours {
  ink: string;
  muted: string;
  panel: string;
  accent: string;
  dot: string;
  /** From low to high. */
  scale: string[];
}

const kDark = "(prefers-color-scheme: dark)";

function coloursNow(): Colours {
  const style = getComputedStyle(document.documentElement);
  const color = (name: string): string => style.getPropertyValue(name).trim();
  return {
    ink: color("--ink"),
    muted: color("--muted"),
    panel: color("--panel"),
    accent: color("--accent"),
    dot: color("--line-1"),
    scale: [1, 2, 3, 4, 5].map((i) => color(`--scale-${i}`)),
  };
}

/** The theme's colours, for what is drawn on a canvas. */
export function useColours(): Colours {
  const [dark, setDark] = useState(() => matchMedia(kDark).matches);
  useLayoutEffect(() => {
    const theme = matchMedia(kDark);
    const change = (): void => setDark(theme.matches);
    theme.addEventListener("change", change);
    return () => theme.removeEventListener("change", change);
  }, []);
  return useMemo(coloursNow, [dark]);
}

/**
 * Draws on a canvas of some size, as sharp as the screen is: to be set as its `ref`. What `draw` returns is drawn after it, a step in each
 * frame, so that the page answers meanwhile.
 */
export function useCanvas(
  width: number,
  height: number,
  draw: (ctx: CanvasRenderingContext2D) => (() => void)[] | void,
  inputs: unknown[],
): (canvas: HTMLCanvasElement | null) => void {
  const [element, setElement] = useState<HTMLCanvasElement | null>(null);
  useLayoutEffect(() => {
    const ctx = element?.getContext("2d");
    if (!element || !ctx || width <= 0) return;
    const paint = (): void => {
      const sharp = Math.min(3, devicePixelRatio || 1);
      element.width = Math.round(width * sharp);
      element.height = Math.round(height * sharp);
      ctx.scale(sharp, sharp);
      const steps = draw(ctx) ?? [];
      const go = (): void => {
        steps.shift()?.();
        if (steps.length > 0) next = requestAnimationFrame(go);
      };
      go();
    };
    // in the frame after the one in which the page has answered: many rows take a while to draw
    let next = requestAnimationFrame(() => (next = requestAnimationFrame(paint)));
    return () => cancelAnimationFrame(next);
  }, [element, width, height, ...inputs]);
  return setElement;
}

const kSteps = 32;

/** The scale of colours with its ends. */
export function Legend({ axis, frame, low, high }: { axis: Axis; frame: Frame; low: number; high: number }) {
  const { scale } = useColours();
  if (!(low <= high)) return null;
  return (
    <p class="charts-legend">
      <span class="muted">
        <bdi>{axis.title}</bdi>
      </span>
      <span class="num">{frame.text(axis, low)}</span>
      <svg viewBox={`0 0 ${kSteps} 1`} width="160" height="12" preserveAspectRatio="none" aria-hidden="true">
        {Array.from({ length: kSteps }, (_, i) => (
          <rect key={i} x={i} width="1.05" height="1" fill={rampAt(scale, i / (kSteps - 1))} />
        ))}
      </svg>
      <span class="num">{frame.text(axis, high)}</span>
      {axis.column && axis.column.better !== "none" && axis.column.better !== "" && (
        <span class="muted">{axis.column.better} is better</span>
      )}
    </p>
  );
}

/** Points a row out, or no longer. */
export function toggleChosen(chosen: ReadonlySet<string>, id: string): void {
  const next = new Set(chosen);
  if (!next.delete(id)) next.add(id);
  navigate(withQuery({ chosen: next.size > 0 ? [...next].join(" ") : null }));
}

/** Which rows are chosen, and what can be done with them. */
export function ChosenBar({ chosen, brush }: { chosen: ReadonlySet<string>; brush: string[] }) {
  if (chosen.size === 0) return null;
  return (
    <span class="chip brush-chip">
      <span role="status">{plural(chosen.size, "row")} chosen</span>–
      <Link href={withQuery({ brush, chosen: null })}>keep only {chosen.size === 1 ? "it" : "these"}</Link>
      <Link href={withQuery({ chosen: null })} aria-label="Clear the chosen rows">
        clear
      </Link>
    </span>
  );
}

/** What is under the pointer, beside it: never where it covers that. `spoken`: it was reached by keyboard. */
export function Readout({
  frame,
  row,
  axes,
  onLeft,
  spoken,
}: {
  frame: Frame;
  row: number | undefined;
  axes: readonly Axis[];
  onLeft: boolean;
  spoken: boolean;
}) {
  const texts = row === undefined ? [] : axes.map((axis) => [axis.title, frame.cellText(axis, row)] as const);
  return (
    <>
      {row !== undefined && (
        <div class={`charts-readout ${onLeft ? "charts-readout-left" : ""}`} aria-hidden="true">
          <bdi class="charts-readout-name">{frame.rows[row]!.label}</bdi>
          <dl>
            {texts.map(([title, text], i) => (
              <div key={i}>
                <dt>
                  <bdi>{title}</bdi>
                </dt>
                <dd class="num">
                  <bdi>{text}</bdi>
                </dd>
              </div>
            ))}
          </dl>
        </div>
      )}
      <span class="sr-only" role="status">
        {spoken &&
          row !== undefined &&
          `${frame.rows[row]!.label}: ${texts.map((text) => text.join(" ")).join(", ")}`}
      </span>
    </>
  );
}
