// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import { Notice } from "../../../../components/notice";
import { plural, whole } from "../../../../format";
import { navigate, withQuery } from "../../../../router";
import { brushOf, withBrush, type Brush } from "./brush";
import type { ChartChoice } from "./choice";
import { effectsOf, kMostLevels, type Effect, type Effects, type LevelMean } from "./effects";
import { datum, type DataTable } from "./data";
import { ChartFigure } from "./figure";
import type { Axis, Frame } from "./frame";
import { lit } from "./lit";
import { extentOf, scaleOf, type Scale } from "./scales";
import { percent, Ticks } from "./ticks";

export interface EffectsProps {
  frame: Frame;
  of: Axis;
  choice: ChartChoice;
  brushes: readonly Brush[];
}

/** For each setting the mean of a metric at each of its levels, and how much of the spread between rows it explains. */
export default function MainEffects({ frame, of, choice, brushes }: EffectsProps) {
  const found = useMemo(() => effectsOf(frame, of), [frame, of]);
  if (found.why) return <Notice kind="empty" title={found.why} />;
  const levels = found.effects.flatMap((effect) => effect.levels);
  const ends = levels.flatMap(({ mean, low, high }) => [mean ?? NaN, low ?? NaN, high ?? NaN]);
  const extent = extentOf([ends]);
  const scale = scaleOf(extent?.low ?? 0, extent?.high ?? 1);
  const notes = [
    ...(choice.asTable ? found.together : []),
    `Means over rows, each row by the mean of its seeds. ${
      found.degrees > 0
        ? `Bars: 95 % intervals of these means over other seeds (t, ${plural(found.degrees, "degree")} of freedom; the variance between the seeds of a row, pooled over rows). They are not of other settings.`
        : "No intervals: no row has two seeds."
    } Dashed line: the mean of all ${plural(found.n, "row")}, ${frame.text(of, found.mean!)}.`,
    found.n < found.of &&
      `${found.of - found.n} of ${plural(found.of, "row")} have no value and are left out.`,
    found.broken > 0 &&
      `${plural(found.broken, "row")} of these diverged or gave NaN: their levels may look better than they are.`,
  ];
  return (
    <div class="effects">
      <ChartFigure
        title={`Mean ${of.title} at each level`}
        notes={notes}
        asTable={choice.asTable}
        data={() => meansTable(frame, of, found)}
      >
        {found.together.map((said) => (
          <p class="charts-notes" key={said}>
            <bdi>{said}</bdi>
          </p>
        ))}
        <div
          class="scroll tall bars-box"
          tabIndex={0}
          role="region"
          aria-label={`Mean ${of.title} at each level`}
          onPointerLeave={() => lit.set([])}
        >
          <table class="bars wide">
            <caption class="sr-only">
              Mean {of.title} at each level. A level's button keeps only its rows in the ablation table.
            </caption>
            <thead>
              <tr>
                <th scope="col">Level</th>
                <th scope="col" class="bars-axis">
                  <Ticks scale={scale} title={of.title} />
                </th>
                <th scope="col" class="num">
                  mean<span class="wide-only">, 95 % interval</span>
                </th>
                <th scope="col" class="num">
                  n
                </th>
              </tr>
            </thead>
            {found.effects.map((effect) => (
              <tbody key={effect.axis.key}>
                <tr class="row-group">
                  <th scope="rowgroup" colSpan={4}>
                    <bdi class="name">{effect.axis.title}</bdi>
                    {effect.over && <span class="muted bars-over">{effect.over}</span>}
                  </th>
                </tr>
                {effect.none || effect.levels.length > kMostLevels ? (
                  <tr>
                    <td colSpan={4} class="muted">
                      {effect.none || `${plural(effect.levels.length, "level")}: too many to draw`}
                    </td>
                  </tr>
                ) : (
                  effect.levels.map((level, i) => (
                    <Level
                      key={level.level}
                      {...{ frame, of, effect, level, scale, brushes }}
                      place={i}
                      grand={found.mean!}
                    />
                  ))
                )}
              </tbody>
            ))}
          </table>
        </div>
      </ChartFigure>
      <Importance frame={frame} of={of} found={found} asTable={choice.asTable} />
    </div>
  );
}

interface LevelProps {
  frame: Frame;
  of: Axis;
  effect: Effect;
  level: LevelMean;
  place: number;
  scale: Scale;
  grand: number;
  brushes: readonly Brush[];
}

function Level({ frame, of, effect, level, place, scale, grand, brushes }: LevelProps) {
  const { axis } = effect;
  const brush = brushOf(brushes, axis.key);
  const isPressed = brush?.kind === "in" && brush.levels.length === 1 && brush.levels[0] === level.level;
  const at = (value: number): string => percent(scale.at(value));
  const point = (): void => {
    const { of: levels } = frame.levels(axis);
    lit.set(frame.rows.filter((_, i) => levels[i] === place).map(({ id }) => id));
  };
  const press = (): void => {
    const only: Brush = { kind: "in", axis: axis.key, levels: [level.level] };
    navigate(withQuery({ brush: withBrush(brushes, axis.key, isPressed ? undefined : only) }));
  };
  return (
    <tr class={isPressed ? "chosen" : ""} onPointerEnter={point}>
      <th scope="row">
        <button
          type="button"
          class="bars-name"
          aria-pressed={isPressed}
          title={level.level}
          onClick={press}
          onFocus={point}
          onBlur={() => lit.set([])}
        >
          <bdi>{level.level}</bdi>
        </button>
      </th>
      <td class="bars-plot">
        <svg width="100%" height="100%" aria-hidden="true">
          {scale.ticks.map((mark) => (
            <line key={mark} x1={at(mark)} x2={at(mark)} y1="0" y2="100%" class="bars-grid" />
          ))}
          <line x1={at(grand)} x2={at(grand)} y1="0" y2="100%" class="bars-base" />
          <svg y="50%" overflow="visible">
            {level.low !== undefined && level.high !== undefined && (
              <>
                <line x1={at(level.low)} x2={at(level.high)} y1="0" y2="0" class="bars-interval" />
                <line x1={at(level.low)} x2={at(level.low)} y1="-5" y2="5" class="bars-interval" />
                <line x1={at(level.high)} x2={at(level.high)} y1="-5" y2="5" class="bars-interval" />
              </>
            )}
            {level.mean !== undefined && <circle cx={at(level.mean)} cy="0" r="4.5" class="bars-dot" />}
          </svg>
        </svg>
      </td>
      <td class="num">
        {level.mean === undefined ? "no value" : frame.text(of, level.mean)}
        <span class="muted wide-only">{intervalText(frame, of, level)}</span>
      </td>
      <td class="num muted">
        {level.n < level.of ? `${whole(level.n)}/${whole(level.of)}` : whole(level.n)}
      </td>
    </tr>
  );
}

function intervalText(frame: Frame, of: Axis, { mean, low, high }: LevelMean): string {
  if (mean === undefined) return "";
  if (low === undefined || high === undefined) return "";
  return `, ${frame.text(of, low)} to ${frame.text(of, high)}`;
}

function Importance({
  frame,
  of,
  found,
  asTable,
}: {
  frame: Frame;
  of: Axis;
  found: Effects;
  asTable: boolean;
}) {
  const notes = [
    `η² = Σ n·(level mean − mean)² / Σ (row − mean)²: what a setting explains alone of the spread of ${of.title} between rows; seeds and interactions are in the rest. Tick: what a setting without any effect would get on average, (levels − 1) / (rows − 1).`,
    found.anova,
    ...found.notes,
    found.notes.length === 0 &&
      frame.settings.length > 1 &&
      "The design is balanced: the shares do not overlap.",
  ];
  return (
    <ChartFigure
      title="Importance: share of the variance explained"
      notes={notes}
      asTable={asTable}
      data={() => ({
        head: ["setting", "η²", "by chance", "why none"],
        rows: found.effects.map(({ axis, share, byChance, why }) => [
          axis.title,
          [share, share?.toFixed(3) ?? "–"],
          share === undefined ? [share, "–"] : [byChance, byChance.toFixed(3)],
          why,
        ]),
      })}
    >
      <div class="scroll" tabIndex={0} role="region" aria-label="Importance of the settings">
        <table class="bars wide">
          <caption class="sr-only">
            Share of the variance of {of.title} between rows that each setting explains alone
          </caption>
          <thead>
            <tr>
              <th scope="col">Setting</th>
              <th scope="col" class="bars-axis">
                <span class="sr-only">Share</span>
              </th>
              <th scope="col" class="num">
                η²
              </th>
            </tr>
          </thead>
          <tbody>
            {found.effects.map(({ axis, share, byChance, why }) => (
              <tr key={axis.key}>
                <th scope="row" title={axis.title}>
                  <bdi class="name">{axis.title}</bdi>
                </th>
                {share === undefined ? (
                  <td colSpan={2} class="muted bars-why">
                    {why}
                  </td>
                ) : (
                  <>
                    <td class="bars-plot">
                      <svg width="100%" height="100%" aria-hidden="true">
                        <svg y="50%" overflow="visible">
                          <rect x="0" y="-7" width="100%" height="14" class="bars-track" />
                          <rect x="0" y="-7" width={percent(share)} height="14" class="bars-bar" />
                          <line
                            x1={percent(byChance)}
                            x2={percent(byChance)}
                            y1="-11"
                            y2="11"
                            class="bars-interval"
                          />
                        </svg>
                      </svg>
                    </td>
                    <td class="num">
                      {share.toFixed(3)} <span class="muted wide-only">by chance {byChance.toFixed(3)}</span>
                    </td>
                  </>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </ChartFigure>
  );
}

function meansTable(frame: Frame, of: Axis, found: Effects): DataTable {
  return {
    head: ["setting", "level", "mean", "low", "high", "n", "rows", "averaged"],
    rows: found.effects.flatMap(({ axis, levels, over, none }) =>
      levels.map(({ level, mean, low, high, n, of: rows }) => [
        axis.title,
        level,
        ...[mean, low, high].map((value) => datum(frame, of, value)),
        String(n),
        String(rows),
        none || over,
      ]),
    ),
  };
}
