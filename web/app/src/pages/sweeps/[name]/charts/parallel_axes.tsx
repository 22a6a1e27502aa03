// SPDX-License-Identifier: Apache-2.0
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { plural, tick } from "../../../../format";
import { navigate, withQuery } from "../../../../router";
import { brushOf, countKept, keptBy, withBrush, type Brush } from "./brush";
import type { Brushed } from "./brush_chip";
import type { ChartChoice } from "./choice";
import { rampAt, shareOf } from "./colours";
import { rowsTable } from "./data";
import { ChartFigure, Legend, Readout, toggleChosen, useCanvas, useColours, useWidth } from "./figure";
import type { Axis, Frame } from "./frame";
import { lit } from "./lit";
import { brushAt, nearestLine, segmentsOf, sharesOf, stepOf, trackOf, type Track } from "./parallel";
import { extentOf, ticksOf } from "./scales";

interface Props {
  frame: Frame;
  /** What colours the lines; undefined: the table has no metric. */
  of: Axis | undefined;
  axes: readonly Axis[];
  choice: ChartChoice;
  brushes: readonly Brush[];
  brushed: Brushed | undefined;
}

const kHeight = 340;
const kTop = 44;
const kBottom = 14;
const kInside = kHeight - kTop - kBottom;
/** Room of an axis for itself and its texts, in pixels. */
const kLeast = 116;
const kSide = 28;
/** Room for the texts of the last axis. */
const kLast = 92;
/** Colours that lines are drawn in. */
const kColours = 24;
/** Of more rows than this, lines that run together are drawn once. */
const kMostLines = 400;
/** Numbers of segments that are drawn at once: 600 segments. */
const kStep = 1800;
/** Ticks of a setting: more levels than this have one for each second, third, … */
const kMostTexts = 14;

/** A line for each row across axes of settings and metrics. A drag on an axis keeps the rows that pass there. */
export function ParallelAxes({ frame, of, axes, choice, brushes, brushed }: Props) {
  const [ref, , seen] = useWidth();
  const inner = useRef<HTMLDivElement>(null);
  const width = Math.max(seen, axes.length * kLeast);
  const colours = useColours();
  const [hover, setHover] = useState<number | undefined>();
  const [onLeft, setOnLeft] = useState(false);
  const [drag, setDrag] = useState<{ place: number; from: number; to: number } | undefined>();
  const tracks = useMemo(
    () => axes.map((axis) => trackOf(frame, axis)),
    [frame, axes.map((a) => a.key).join("\n")],
  );
  const gap = axes.length > 1 ? (width - 2 * kSide - kLast) / (axes.length - 1) : 0;
  const left = (place: number): number => kSide + place * gap;
  const top = (share: number): number => kTop + (1 - share) * kInside;
  const values = of && frame.values(of);
  const extent = useMemo(() => (values ? extentOf([values]) : undefined), [values]);
  useEffect(() => () => lit.set([]), []);
  const point = (row: number | undefined): void => {
    if (row === hover) return;
    setHover(row);
    lit.set(row === undefined ? [] : [frame.rows[row]!.id]);
  };

  const isCrowd = frame.rows.length > kMostLines;
  const canvas = useCanvas(
    width,
    kHeight,
    (ctx) => {
      ctx.clearRect(0, 0, width, kHeight);
      // 0: the brush leaves it out, 1: it has no value of the colour, from 2 on: a colour
      const looks = Int8Array.from(frame.rows, (_, i) => {
        if (brushed && brushed.kept[i] === 0) return 0;
        const value = values?.[i] ?? NaN;
        if (!extent || Number.isNaN(value)) return 1;
        return 2 + Math.min(kColours - 1, Math.floor(shareOf(value, extent.low, extent.high) * kColours));
      });
      const strength = isCrowd ? 0.9 : Math.max(0.4, Math.min(1, 60 / Math.max(1, frame.rows.length)));
      const pen = (look: number): void => {
        ctx.setLineDash(look === 1 ? [4, 4] : []);
        ctx.lineWidth = look < 2 ? 1 : isCrowd ? 1.2 : 1.6;
        ctx.strokeStyle = look < 2 ? colours.muted : rampAt(colours.scale, (look - 1.5) / kColours);
        ctx.globalAlpha = look === 0 ? 0.14 : look === 1 ? 0.6 : strength;
        ctx.beginPath();
      };
      const strong = (): void => {
        pen(1);
        ctx.setLineDash([]);
        ctx.strokeStyle = colours.accent;
        ctx.lineWidth = 3;
        ctx.globalAlpha = 1;
        frame.rows.forEach(({ id }, i) => choice.chosen.has(id) && path(ctx, tracks, i, left, top));
        ctx.stroke();
      };
      if (!isCrowd) {
        const order = [...looks.keys()].sort((a, b) => looks[a]! - looks[b]!);
        for (const row of order) {
          pen(looks[row]!);
          path(ctx, tracks, row, left, top);
          ctx.stroke();
        }
        strong();
        return [];
      }
      const steps: (() => void)[] = [];
      for (const { look, points } of segmentsOf(tracks, looks))
        for (let from = 0; from < points.length; from += kStep)
          steps.push(() => {
            pen(look);
            for (let i = from; i < Math.min(points.length, from + kStep); i += 3) {
              ctx.moveTo(left(points[i]!), top(points[i + 1]!));
              ctx.lineTo(left(points[i]! + 1), top(points[i + 2]!));
            }
            ctx.stroke();
          });
      steps.push(strong);
      return steps;
    },
    [tracks, width, brushed, colours, extent, choice.chosen],
  );

  const shareAt = (event: PointerEvent): number => {
    const { top: edge } = inner.current!.getBoundingClientRect();
    return Math.min(1, Math.max(0, 1 - (event.clientY - edge - kTop) / kInside));
  };
  const commit = (place: number, from: number, to: number, how: "push" | "replace" = "push"): void => {
    const track = tracks[place]!;
    navigate(withQuery({ brush: withBrush(brushes, track.axis.key, brushAt(track, from, to)) }), how);
  };
  const clear = (place: number): void =>
    navigate(withQuery({ brush: withBrush(brushes, tracks[place]!.axis.key, undefined) }));
  const onMove = (event: PointerEvent): void => {
    const edge = inner.current!.getBoundingClientRect();
    setOnLeft(event.clientX - (inner.current!.parentElement?.getBoundingClientRect().left ?? 0) > seen / 2);
    const across = (event.clientX - edge.left - kSide) / (gap || 1);
    const place = Math.floor(across);
    const [a, b] = [tracks[place], tracks[place + 1]];
    if (!a || !b) return point(undefined);
    point(nearestLine(a.at, b.at, across - place, shareAt(event), 8 / kInside, brushed?.kept));
  };
  const onClick = (): void => {
    if (hover !== undefined) toggleChosen(choice.chosen, frame.rows[hover]!.id);
  };

  const gaps = frame.rows.filter((_, i) => tracks.some(({ at }) => Number.isNaN(at[i]!))).length;
  const plain = values ? frame.rows.filter((_, i) => Number.isNaN(values[i]!)).length : 0;
  const notes = [
    seen > 0 && width > seen && "Scroll sideways for more axes.",
    isCrowd && "Lines that run together are drawn once, in the colour of the highest.",
    "Drag along an axis, or move its ends with the arrow keys, to show only rows in that range. Click an axis to clear its range, a line to select its row.",
    gaps > 0 && `${plural(gaps, "row")} without a value on some axis: the line has a gap there.`,
    plain > 0 && of !== undefined && `Dashed: ${plural(plain, "row")} without a value of ${of.title}.`,
  ];
  const title = of ? `Rows by ${axes.length} axes, coloured by ${of.title}` : `Rows by ${axes.length} axes`;
  const preview = drag && brushAt(tracks[drag.place]!, drag.from, drag.to);
  return (
    <ChartFigure title={title} notes={notes} asTable={choice.asTable} data={() => rowsTable(frame, axes)}>
      <div class="chart-frame">
        <div class="scroll parallel-box" ref={ref}>
          <div
            class="parallel"
            ref={inner}
            role="group"
            aria-label={`${title}: ${plural(frame.rows.length, "row")}`}
            style={{ width: `${width}px`, height: `${kHeight}px` }}
            onPointerMove={(event) => !drag && onMove(event)}
            onPointerLeave={() => point(undefined)}
            onClick={onClick}
          >
            <canvas ref={canvas} aria-hidden="true" style={{ width: `${width}px`, height: `${kHeight}px` }} />
            <svg width={width} height={kHeight} aria-hidden="true">
              {hover !== undefined && <path d={pathOf(tracks, hover, left, top)} class="parallel-hover" />}
              {tracks.map((track, place) => (
                <g key={track.axis.key} class="charts-axes parallel-axis">
                  <line x1={left(place)} x2={left(place)} y1={top(1)} y2={top(0)} class="parallel-line" />
                  {ticks(frame, track).map(({ share, text }) => (
                    <g key={share}>
                      <line
                        x1={left(place) - 4}
                        x2={left(place)}
                        y1={top(share)}
                        y2={top(share)}
                        class="parallel-line"
                      />
                      <text x={left(place) + 13} y={top(share) + 4} direction="ltr">
                        {short(text, gap)}
                      </text>
                    </g>
                  ))}
                </g>
              ))}
            </svg>
            {tracks.map((track, place) => {
              const kept = sharesOf(track, brushOf(brushes, track.axis.key));
              const now: [number, number] | undefined =
                drag?.place === place ? [Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)] : kept;
              return (
                <Handles
                  key={track.axis.key}
                  frame={frame}
                  track={track}
                  x={left(place)}
                  width={place === tracks.length - 1 ? kLast + kSide : Math.max(72, Math.min(gap - 6, 150))}
                  range={now}
                  top={top}
                  onDown={(event) => {
                    event.stopPropagation();
                    (event.currentTarget as Element).setPointerCapture(event.pointerId);
                    const share = shareAt(event);
                    setDrag({ place, from: share, to: share });
                  }}
                  onGrab={(event, end) => {
                    event.stopPropagation();
                    (event.currentTarget as Element).setPointerCapture(event.pointerId);
                    const [low, high] = now ?? [0, 1];
                    setDrag({ place, from: end === "low" ? high : low, to: end === "low" ? low : high });
                  }}
                  onMove={(event) => drag?.place === place && setDrag({ ...drag, to: shareAt(event) })}
                  onUp={() => {
                    if (drag?.place !== place) return;
                    if (Math.abs(drag.from - drag.to) < 0.015) clear(place);
                    else commit(place, drag.from, drag.to);
                    setDrag(undefined);
                  }}
                  onCancel={() => setDrag(undefined)}
                  onSet={(low, high) => commit(place, low, high, "replace")}
                  onClear={() => clear(place)}
                />
              );
            })}
          </div>
        </div>
        {drag && (
          <span class="charts-count num">
            {plural(
              countKept(
                keptBy(frame, [
                  ...brushes.filter(
                    (brush) => brush.kind === "rows" || brush.axis !== tracks[drag.place]!.axis.key,
                  ),
                  ...(preview ? [preview] : []),
                ]),
              ),
              "row",
            )}
          </span>
        )}
        {!drag && <Readout frame={frame} row={hover} axes={axes} onLeft={onLeft} spoken={false} />}
      </div>
      {of && extent && <Legend axis={of} frame={frame} low={extent.low} high={extent.high} />}
    </ChartFigure>
  );
}

function path(
  ctx: CanvasRenderingContext2D,
  tracks: Track[],
  row: number,
  left: (place: number) => number,
  top: (share: number) => number,
): void {
  let on = false;
  tracks.forEach(({ at }, place) => {
    const share = at[row]!;
    if (Number.isNaN(share)) {
      on = false;
      return;
    }
    if (on) ctx.lineTo(left(place), top(share));
    else ctx.moveTo(left(place), top(share));
    on = true;
  });
}

function pathOf(
  tracks: Track[],
  row: number,
  left: (place: number) => number,
  top: (share: number) => number,
): string {
  let on = false;
  return tracks
    .map(({ at }, place) => {
      const share = at[row]!;
      const is = !Number.isNaN(share);
      const text = is ? `${on ? "L" : "M"}${left(place)} ${top(share)}` : "";
      on = is;
      return text;
    })
    .join("");
}

function ticks(frame: Frame, { axis, levels, low, high }: Track): { share: number; text: string }[] {
  if (levels) {
    const stride = Math.ceil(levels.length / kMostTexts);
    const last = Math.max(1, levels.length - 1);
    return levels.flatMap((text, i) =>
      i % stride === 0 ? [{ share: levels.length === 1 ? 0.5 : i / last, text }] : [],
    );
  }
  if (Number.isNaN(low)) return [{ share: 0.5, text: "no value" }];
  if (!(high > low)) return [{ share: 0.5, text: frame.text(axis, low) }];
  const inner = ticksOf(low, high, 5).filter((value) => {
    const share = (value - low) / (high - low);
    return share > 0.06 && share < 0.94;
  });
  return [
    { share: 0, text: frame.text(axis, low) },
    ...inner.map((value) => ({ share: (value - low) / (high - low), text: tick(value) })),
    { share: 1, text: frame.text(axis, high) },
  ];
}

/** Cut to the room between two axes: some 6 pixels a letter. */
function short(text: string, gap: number): string {
  const most = Math.max(6, Math.floor((gap || 120) / 7.5) - 2);
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

interface HandlesProps {
  frame: Frame;
  track: Track;
  x: number;
  width: number;
  range: [number, number] | undefined;
  top: (share: number) => number;
  onDown: (event: PointerEvent) => void;
  onGrab: (event: PointerEvent, end: "low" | "high") => void;
  onMove: (event: PointerEvent) => void;
  onUp: () => void;
  onCancel: () => void;
  onSet: (low: number, high: number) => void;
  onClear: () => void;
}

/** An axis's name, the strip that is dragged on, and both ends of its brush, which the keys move. */
function Handles(props: HandlesProps) {
  const { frame, track, x, range, top } = props;
  const [low, high] = range ?? [0, 1];
  const drag = {
    onPointerMove: props.onMove,
    onPointerUp: props.onUp,
    onPointerCancel: props.onCancel,
    onClick: (event: Event) => event.stopPropagation(),
  };
  return (
    <>
      <bdi
        class="parallel-title"
        style={{ left: `${x - 8}px`, width: `${props.width}px` }}
        title={track.axis.title}
      >
        {track.axis.title}
      </bdi>
      <div
        class="parallel-strip"
        style={{ left: `${x - 14}px`, top: `${kTop - 8}px`, height: `${kInside + 16}px` }}
        onPointerDown={props.onDown}
        {...drag}
      >
        {range && (
          <span
            class="parallel-range"
            style={{ top: `${top(high) - kTop + 8}px`, height: `${Math.max(2, top(low) - top(high))}px` }}
          />
        )}
      </div>
      {(["high", "low"] as const).map((end) => (
        <Handle key={end} {...{ frame, track, x, end, low, high, top, drag }} {...props} />
      ))}
    </>
  );
}

function Handle({
  frame,
  track,
  x,
  end,
  low,
  high,
  top,
  drag,
  onGrab,
  onSet,
  onClear,
}: HandlesProps & { end: "low" | "high"; low: number; high: number; drag: object }) {
  const share = end === "low" ? low : high;
  const text = track.levels
    ? track.levels[Math.round(share * Math.max(1, track.levels.length - 1))]!
    : Number.isNaN(track.low)
      ? "no value"
      : frame.text(track.axis, track.low + share * (track.high - track.low));
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = stepOf(track);
    // an end of a band around levels goes on from the level that it holds
    const here = track.levels ? Math.round(share / step) * step : share;
    const to = {
      ArrowUp: here + step,
      ArrowRight: here + step,
      ArrowDown: here - step,
      ArrowLeft: here - step,
      PageUp: here + step * 5,
      PageDown: here - step * 5,
      Home: 0,
      End: 1,
    }[event.key];
    if (event.key === "Escape" || event.key === "Delete") onClear();
    else if (to === undefined) return;
    else {
      const next = Math.min(1, Math.max(0, to));
      const other = end === "low" ? high : low;
      const kept = track.levels ? Math.round(other / step) * step : other;
      if (end === "low") onSet(Math.min(next, kept), kept);
      else onSet(kept, Math.max(next, kept));
    }
    event.preventDefault();
  };
  return (
    <div
      class={`parallel-handle parallel-${end}`}
      role="slider"
      tabIndex={0}
      aria-label={`${track.axis.title}, ${end === "low" ? "lower" : "upper"} end of the rows that are kept`}
      aria-orientation="vertical"
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(share * 100)}
      aria-valuetext={text}
      style={{ left: `${x - 10}px`, top: `${top(share) - (end === "high" ? 9 : 0)}px` }}
      onPointerDown={(event) => onGrab(event, end)}
      onKeyDown={onKeyDown}
      {...drag}
    />
  );
}
