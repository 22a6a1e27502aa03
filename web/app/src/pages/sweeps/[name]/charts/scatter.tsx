// SPDX-License-Identifier: Apache-2.0
import { useEffect, useMemo, useState } from "preact/hooks";
import { plural, tick } from "../../../../format";
import { navigate, withQuery } from "../../../../router";
import { spreadText } from "./bars";
import { brushOf, countKept, keptBy, rangeOf, withBrush, type Brush } from "./brush";
import type { Brushed } from "./brush_chip";
import type { ChartChoice } from "./choice";
import { rowsTable } from "./data";
import { ChartFigure, Readout, toggleChosen, useCanvas, useColours, useWidth } from "./figure";
import type { Axis, Frame } from "./frame";
import { lit } from "./lit";
import { extentOf, Near, scaleOf, type Scale } from "./scales";

interface Props {
  frame: Frame;
  x: Axis;
  y: Axis;
  choice: ChartChoice;
  brushes: readonly Brush[];
  brushed: Brushed | undefined;
}

const kHeight = 360;
const kRoom = { left: 60, right: 16, top: 10, bottom: 26 };
/** Intervals of more points would cover these. */
const kMostIntervals = 400;

interface Box {
  x0: number;
  y0: number;
  x1: number;
  y1: number;
}

/** A point for each row: two numbers of it with their intervals. A drag keeps the rows in its rectangle. */
export function Scatter({ frame, x, y, choice, brushes, brushed }: Props) {
  const [ref, box, width] = useWidth();
  const colours = useColours();
  const [hover, setHover] = useState<{ row: number; spoken: boolean } | undefined>();
  const [drag, setDrag] = useState<Box | undefined>();
  const { logX, logY, spread, chosen } = choice;
  const plot = useMemo(() => placed(frame, x, y, choice, width), [frame, x, y, spread, logX, logY, width]);
  const near = useMemo(() => plot && new Near(plot.px, plot.py), [plot]);
  const order = useMemo(
    () =>
      plot
        ? [...plot.px.keys()].filter((i) => isThere(plot, i)).sort((a, b) => plot.px[a]! - plot.px[b]!)
        : [],
    [plot],
  );
  useEffect(() => () => lit.set([]), []);
  const show = (row: number | undefined, spoken: boolean): void => {
    setHover(row === undefined ? undefined : { row, spoken });
    lit.set(row === undefined ? [] : [frame.rows[row]!.id]);
  };

  const canvas = useCanvas(
    width,
    kHeight,
    (ctx) => {
      ctx.clearRect(0, 0, width, kHeight);
      if (!plot) return;
      const { px, py } = plot;
      const kept = (i: number): boolean => !brushed || brushed.kept[i] === 1;
      const isCrowd = order.length > kMostIntervals;
      const draw = (rows: number[], faint: boolean): void => {
        ctx.globalAlpha = faint ? 0.22 : 1;
        ctx.strokeStyle = colours.dot;
        ctx.lineWidth = 1;
        if (!isCrowd && !faint) {
          ctx.globalAlpha = 0.75;
          ctx.beginPath();
          for (const i of rows) {
            cross(ctx, plot.xLow[i]!, plot.xHigh[i]!, py[i]!, true);
            cross(ctx, plot.yLow[i]!, plot.yHigh[i]!, px[i]!, false);
          }
          ctx.stroke();
          ctx.globalAlpha = 1;
        }
        ctx.fillStyle = colours.dot;
        ctx.beginPath();
        const size = isCrowd ? 2.5 : 4;
        for (const i of rows) {
          ctx.moveTo(px[i]! + size, py[i]!);
          ctx.arc(px[i]!, py[i]!, size, 0, 2 * Math.PI);
        }
        ctx.fill();
        ctx.globalAlpha = 1;
      };
      draw(
        order.filter((i) => !kept(i)),
        true,
      );
      draw(order.filter(kept), false);
      for (const i of order) {
        const isBase = frame.isBaseline(i);
        if (!isBase && !chosen.has(frame.rows[i]!.id)) continue;
        const size = 6.5;
        ctx.beginPath();
        if (isBase) {
          ctx.moveTo(px[i]!, py[i]! - size);
          ctx.lineTo(px[i]! + size, py[i]!);
          ctx.lineTo(px[i]!, py[i]! + size);
          ctx.lineTo(px[i]! - size, py[i]!);
          ctx.closePath();
          ctx.fillStyle = colours.ink;
          ctx.fill();
        }
        if (chosen.has(frame.rows[i]!.id)) {
          ctx.beginPath();
          ctx.arc(px[i]!, py[i]!, size + 2, 0, 2 * Math.PI);
          ctx.strokeStyle = colours.accent;
          ctx.lineWidth = 2.5;
          ctx.stroke();
        }
      }
    },
    [plot, order, brushed, colours, chosen],
  );

  if (!plot && width > 0)
    return (
      <ChartFigure
        title={`${y.title} against ${x.title}`}
        notes={[]}
        asTable={false}
        data={() => rowsTable(frame, [x, y])}
      >
        <p class="charts-none" ref={ref}>
          {whyNone(frame, x, y, logX, logY)}
        </p>
      </ChartFigure>
    );

  const at = (event: PointerEvent): [number, number] => {
    const { left, top } = box!.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  };
  const boxed = (area: Box): Brush[] => {
    const { sx, sy, w, h } = plot!;
    const back = (scale: Scale, share: number): number => scale.back(Math.min(1, Math.max(0, share)));
    const xs = [area.x0, area.x1].map((left) => back(sx, (left - kRoom.left) / w));
    const ys = [area.y0, area.y1].map((top) => back(sy, 1 - (top - kRoom.top) / h));
    return x === y
      ? [rangeOf(x.key, xs[0]!, xs[1]!)]
      : [rangeOf(x.key, xs[0]!, xs[1]!), rangeOf(y.key, ys[0]!, ys[1]!)];
  };
  const onPointerDown = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    box!.setPointerCapture(event.pointerId);
    const [x0, y0] = at(event);
    setDrag({ x0, y0, x1: x0, y1: y0 });
  };
  const onPointerMove = (event: PointerEvent): void => {
    const [x1, y1] = at(event);
    if (drag) return setDrag({ ...drag, x1, y1 });
    const row = near?.to(x1, y1);
    if (row !== hover?.row) show(row, false);
  };
  const onPointerUp = (event: PointerEvent): void => {
    const [x1, y1] = at(event);
    if (drag && Math.hypot(x1 - drag.x0, y1 - drag.y0) > 5) {
      let next = brushes;
      for (const one of boxed({ ...drag, x1, y1 }))
        next = [...next.filter((other) => other.kind === "rows" || other.axis !== axisOf(one)), one];
      navigate(withQuery({ brush: withBrush(next, "none", undefined) }));
    } else if (drag) {
      const row = near?.to(x1, y1);
      show(row, false);
      if (row !== undefined) toggleChosen(chosen, frame.rows[row]!.id);
    }
    setDrag(undefined);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || order.length === 0) return;
    const here = hover ? order.indexOf(hover.row) : -1;
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
    if (step !== undefined) {
      const next = Math.min(order.length - 1, Math.max(0, here < 0 && step > 0 ? 0 : here + step));
      show(order[next], true);
    } else if ((event.key === "Enter" || event.key === " ") && hover) {
      toggleChosen(chosen, frame.rows[hover.row]!.id);
    } else if (event.key === "Escape") show(undefined, true);
    else return;
    event.preventDefault();
  };

  const missing = frame.rows.length - order.length;
  const left = plot?.left ?? 0;
  const notes = [
    "Drag to keep the rows in a rectangle, press a point to choose its row.",
    spread !== "none" &&
      (order.length > kMostIntervals
        ? `Intervals are drawn for ${kMostIntervals} points at most.`
        : `Intervals: ${spreadText(frame, spread)}.`),
    order.some((i) => frame.isBaseline(i)) && "◆ the baseline.",
    left > 0 && `${plural(left, "row")} with 0 or less not on the logarithmic axis.`,
    missing - left > 0 && `${missing - left} of ${plural(frame.rows.length, "row")} without both values.`,
  ];
  const title = `${y.title} against ${x.title}`;
  const ranges = [brushOf(brushes, x.key), brushOf(brushes, y.key)];
  return (
    <ChartFigure title={title} notes={notes} asTable={choice.asTable} data={() => rowsTable(frame, [x, y])}>
      <p class="scatter-y muted">
        <bdi>{y.title}</bdi>
      </p>
      <div class="chart-frame scatter" style={{ height: `${kHeight}px` }}>
        <div
          class="scatter-plot"
          ref={ref}
          role="img"
          tabIndex={0}
          aria-label={`Scatter of ${title}, ${plural(order.length, "point")}. Arrow keys go from point to point, Enter chooses its row.`}
          aria-keyshortcuts="ArrowLeft ArrowRight Enter Escape"
          onPointerDown={onPointerDown}
          onPointerMove={onPointerMove}
          onPointerUp={onPointerUp}
          onPointerCancel={() => setDrag(undefined)}
          onPointerLeave={() => !drag && show(undefined, false)}
          onKeyDown={onKeyDown}
          onBlur={() => show(undefined, false)}
        >
          {plot && (
            <svg width={width} height={kHeight} aria-hidden="true">
              <Axes plot={plot} width={width} />
            </svg>
          )}
          <canvas ref={canvas} style={{ width: "100%", height: `${kHeight}px` }} />
          {plot && (
            <svg width={width} height={kHeight} aria-hidden="true">
              {ranges[0]?.kind === "range" || ranges[1]?.kind === "range" ? (
                <Area box={areaOf(plot, ranges[0], ranges[1])} />
              ) : null}
              {drag && <Area box={drag} />}
              {hover && isThere(plot, hover.row) && (
                <circle cx={plot.px[hover.row]!} cy={plot.py[hover.row]!} r="7" class="charts-ring" />
              )}
            </svg>
          )}
        </div>
        {drag && plot && Math.hypot(drag.x1 - drag.x0, drag.y1 - drag.y0) > 5 && (
          <span class="charts-count num">{plural(countKept(keptBy(frame, boxed(drag))), "row")}</span>
        )}
        {plot && !drag && (
          <Readout
            frame={frame}
            row={hover?.row}
            axes={x === y ? [x] : [y, x]}
            onLeft={hover !== undefined && plot.px[hover.row]! > width / 2}
            spoken={hover?.spoken ?? false}
          />
        )}
      </div>
      <p class="scatter-x muted">
        <bdi>{x.title}</bdi>
      </p>
    </ChartFigure>
  );
}

const axisOf = (brush: Brush): string => (brush.kind === "rows" ? "" : brush.axis);

interface Placed {
  px: Float64Array;
  py: Float64Array;
  xLow: Float64Array;
  xHigh: Float64Array;
  yLow: Float64Array;
  yHigh: Float64Array;
  sx: Scale;
  sy: Scale;
  w: number;
  h: number;
  /** Rows that a logarithmic axis leaves out. */
  left: number;
}

const isThere = ({ px, py }: Placed, i: number): boolean => !Number.isNaN(px[i]!) && !Number.isNaN(py[i]!);

/** Where rows are on the chart, in pixels. */
function placed(frame: Frame, x: Axis, y: Axis, choice: ChartChoice, width: number): Placed | undefined {
  const { logX, logY, spread } = choice;
  const [xs, ys] = [frame.values(x), frame.values(y)];
  const [bx, by] = [frame.bounds(x, spread), frame.bounds(y, spread)];
  const both = Float64Array.from(xs, (value, i) => (Number.isNaN(ys[i]!) || Number.isNaN(value) ? NaN : 1));
  const only = (values: Float64Array): Float64Array => values.map((value, i) => value * both[i]!);
  const ex = extentOf([only(xs), only(bx.low), only(bx.high)], logX);
  const ey = extentOf([only(ys), only(by.low), only(by.high)], logY);
  if (!ex || !ey || width <= 0) return undefined;
  const w = Math.max(40, width - kRoom.left - kRoom.right);
  const h = kHeight - kRoom.top - kRoom.bottom;
  const sx = scaleOf(ex.low, ex.high, logX, Math.max(2, Math.floor(w / 90)));
  const sy = scaleOf(ey.low, ey.high, logY, 6);
  const across = (value: number): number => (logX && value <= 0 ? NaN : kRoom.left + sx.at(value) * w);
  const down = (value: number): number => (logY && value <= 0 ? NaN : kRoom.top + (1 - sy.at(value)) * h);
  const off = (i: number): boolean => both[i] === 1 && ((logX && xs[i]! <= 0) || (logY && ys[i]! <= 0));
  let left = 0;
  for (let i = 0; i < xs.length; ++i) left += Number(off(i));
  return {
    px: xs.map(across),
    py: ys.map(down),
    xLow: bx.low.map(across),
    xHigh: bx.high.map(across),
    yLow: by.low.map(down),
    yHigh: by.high.map(down),
    sx,
    sy,
    w,
    h,
    left,
  };
}

/** An interval with its ends, along x or along y. */
function cross(ctx: CanvasRenderingContext2D, low: number, high: number, at: number, alongX: boolean): void {
  if (Number.isNaN(low) || Number.isNaN(high) || Number.isNaN(at)) return;
  const line = (a: number, b: number, c: number, d: number): void => {
    ctx.moveTo(alongX ? a : b, alongX ? b : a);
    ctx.lineTo(alongX ? c : d, alongX ? d : c);
  };
  line(low, at, high, at);
  line(low, at - 3, low, at + 3);
  line(high, at - 3, high, at + 3);
}

function Axes({ plot, width }: { plot: Placed; width: number }) {
  const { sx, sy, w, h } = plot;
  return (
    <g class="charts-axes">
      {sx.ticks.map((value) => {
        const left = kRoom.left + sx.at(value) * w;
        return (
          <g key={`x ${value}`}>
            <line x1={left} x2={left} y1={kRoom.top} y2={kRoom.top + h} />
            <text x={left} y={kHeight - 8} text-anchor="middle">
              {tick(value)}
            </text>
          </g>
        );
      })}
      {sy.ticks.map((value) => {
        const top = kRoom.top + (1 - sy.at(value)) * h;
        return (
          <g key={`y ${value}`}>
            <line x1={kRoom.left} x2={width - kRoom.right} y1={top} y2={top} />
            <text x={kRoom.left - 7} y={top + 4} text-anchor="end">
              {tick(value)}
            </text>
          </g>
        );
      })}
    </g>
  );
}

function Area({ box }: { box: Box }) {
  return (
    <rect
      class="charts-area"
      x={Math.min(box.x0, box.x1)}
      y={Math.min(box.y0, box.y1)}
      width={Math.abs(box.x1 - box.x0)}
      height={Math.abs(box.y1 - box.y0)}
    />
  );
}

/** The rectangle that brushes of both axes keep. */
function areaOf({ sx, sy, w, h }: Placed, x: Brush | undefined, y: Brush | undefined): Box {
  const share = (scale: Scale, value: number): number =>
    scale.log && value <= 0 ? 0 : Math.min(1, Math.max(0, scale.at(value)));
  const [x0, x1] = x?.kind === "range" ? [share(sx, x.from), share(sx, x.to)] : [0, 1];
  const [y0, y1] = y?.kind === "range" ? [share(sy, y.from), share(sy, y.to)] : [0, 1];
  return {
    x0: kRoom.left + x0 * w,
    x1: kRoom.left + x1 * w,
    y0: kRoom.top + (1 - y0) * h,
    y1: kRoom.top + (1 - y1) * h,
  };
}

function whyNone(frame: Frame, x: Axis, y: Axis, logX: boolean, logY: boolean): string {
  for (const [axis, log] of [[x, logX] as const, [y, logY] as const]) {
    const values = frame.values(axis);
    if (values.every(Number.isNaN)) return `No row has a value of ${axis.title}.`;
    if (log && !values.some((value) => value > 0))
      return `No value of ${axis.title} is above 0: a logarithmic axis has no place for them.`;
  }
  return "No row has both values.";
}
