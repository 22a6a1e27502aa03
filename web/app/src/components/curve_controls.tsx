// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { kAxes, whyNot, type AxisKind } from "../curves/axis";
import { smoothingText, type Smoothing } from "../curves/smoothing";
import { kSpreads, type Spread } from "../curves/spread";
import {
  kLongestWindow,
  moved,
  scaled,
  smoothingQuery,
  zoomQuery,
  type CurveView,
  type Zoom,
} from "../curves/view";
import type { CurveRun } from "../generated/ablate";
import { navigate, withQuery } from "../router";

/** Shows another range of the axis. `how`: whether Back returns to the present one. */
export function zoomTo(zoom: Zoom | undefined, how: "push" | "replace" = "push"): void {
  navigate(withQuery({ zoom: zoomQuery(zoom) }), how);
}

interface Props {
  view: CurveView;
  runs: CurveRun[];
  /** The whole axis. */
  all: Zoom | undefined;
  /** Whether there are means, which have bands. */
  means: boolean;
  children?: ComponentChildren;
}

/** Axes, smoothing, bands and zoom, for all charts of a page. */
export function CurveControls({ view, runs, all, means, children }: Props) {
  const { axis, logX, logY, smoothing, spread, zoom } = view;
  const seen = zoom ?? all;
  const change = (to: Zoom | undefined) => (): void => zoomTo(to, "replace");
  return (
    <div class="controls curve-controls" role="group" aria-label="How the curves are drawn">
      <label>
        X axis
        <select
          value={axis}
          onChange={(event) =>
            navigate(withQuery({ axis: notFirst(event.currentTarget.value, "step"), zoom: null }))
          }
        >
          {(Object.keys(kAxes) as AxisKind[]).map((kind) => {
            const why = runs.length > 0 ? whyNot(kind, runs) : undefined;
            return (
              <option key={kind} value={kind} disabled={why !== undefined && kind !== axis} title={why}>
                {kAxes[kind].title}
                {why !== undefined && ` (unknown: ${why})`}
              </option>
            );
          })}
        </select>
      </label>
      <Switch name="logx" label="log x" on={logX} />
      <Switch name="logy" label="log y" on={logY} />
      <SmoothingChoice smoothing={smoothing} />
      {means && (
        <label>
          Band
          <select
            value={spread}
            onChange={(event) => navigate(withQuery({ band: notFirst(event.currentTarget.value, "sd") }))}
          >
            {(Object.keys(kSpreads) as Spread[]).map((kind) => (
              <option key={kind} value={kind}>
                {kSpreads[kind]}
              </option>
            ))}
          </select>
        </label>
      )}
      {seen && all && (
        <span class="curve-zoom" role="group" aria-label="Zoom">
          <Step
            label="Earlier"
            sign="◂"
            to={change(moved(seen, all, -1))}
            off={!zoom || zoom.from <= all.from}
          />
          <Step label="Zoom out" sign="−" to={change(scaled(seen, all, 2))} off={!zoom} />
          <Step label="Zoom in" sign="+" to={change(scaled(seen, all, 0.5))} off={false} />
          <Step label="Later" sign="▸" to={change(moved(seen, all, 1))} off={!zoom || zoom.to >= all.to} />
          {zoom && (
            <>
              <span class="num">
                {kAxes[axis].tick(rounded(zoom.from, zoom))} to {kAxes[axis].tick(rounded(zoom.to, zoom))}
              </span>
              <button type="button" class="quiet" onClick={() => zoomTo(undefined)}>
                Show all
              </button>
            </>
          )}
        </span>
      )}
      {children}
      <span class="muted">
        {smoothing
          ? `Lines are ${smoothingText(smoothing)}; the raw curve is faint behind them.`
          : "No smoothing."}{" "}
        Drag in a chart to zoom, double-click to show all; keys in a chart: + − ← → 0.
      </span>
    </div>
  );
}

const notFirst = (value: string, first: string): string | null => (value === first ? null : value);

/** With as many digits as tell the ends of a range apart. */
function rounded(x: number, { from, to }: Zoom): number {
  const digits = Math.max(0, Math.min(9, 2 - Math.floor(Math.log10(to - from))));
  return Number(x.toFixed(digits));
}

function Step({ label, sign, to, off }: { label: string; sign: string; to: () => void; off: boolean }) {
  return (
    <button type="button" class="quiet" aria-label={label} title={label} disabled={off} onClick={to}>
      {sign}
    </button>
  );
}

function Switch({ name, label, on }: { name: string; label: string; on: boolean }) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={on}
        onChange={(event) => navigate(withQuery({ [name]: event.currentTarget.checked ? "1" : null }))}
      />
      {label}
    </label>
  );
}

function SmoothingChoice({ smoothing }: { smoothing: Smoothing | undefined }) {
  const set = (next: Smoothing | undefined, how: "push" | "replace" = "push"): void =>
    navigate(withQuery({ smooth: smoothingQuery(next) }), how);
  return (
    <>
      <label>
        Smoothing
        <select
          value={smoothing?.kind ?? ""}
          onChange={(event) => {
            const kind = event.currentTarget.value;
            set(
              kind === "ema" ? { kind, factor: 0.9 } : kind === "window" ? { kind, points: 25 } : undefined,
            );
          }}
        >
          <option value="">none</option>
          <option value="ema">exponential mean</option>
          <option value="window">moving mean</option>
        </select>
      </label>
      {smoothing?.kind === "ema" && (
        <label>
          Factor
          <input
            type="number"
            min="0.01"
            max="0.9999"
            step="any"
            value={smoothing.factor}
            onChange={({ currentTarget: { valueAsNumber: factor } }) =>
              factor > 0 && factor < 1 && set({ kind: "ema", factor }, "replace")
            }
          />
        </label>
      )}
      {smoothing?.kind === "window" && (
        <label>
          Points
          <input
            type="number"
            min="2"
            max={kLongestWindow}
            step="1"
            value={smoothing.points}
            onChange={({ currentTarget: { valueAsNumber: points } }) =>
              Number.isInteger(points) &&
              points > 1 &&
              points <= kLongestWindow &&
              set({ kind: "window", points }, "replace")
            }
          />
        </label>
      )}
    </>
  );
}
