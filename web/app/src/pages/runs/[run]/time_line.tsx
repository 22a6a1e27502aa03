// SPDX-License-Identifier: Apache-2.0
import { useMemo, useState } from "preact/hooks";
import { State, stateWord } from "../../../components/state";
import { ColumnHead, TablePanel } from "../../../components/table_panel";
import { duration, plural, whole } from "../../../format";
import type { CurvesResponse, ProbesResponse, RunDetail } from "../../../generated/ablate";
import { useResource, type Resource } from "../../../resource";
import { Link, runPath } from "../../../router";
import { exactMoment, timeTicks } from "../../../time_axis";
import { useWidth } from "../../../width";
import { eventsOf, stretchesOf, type Event, type StepTime, type Stretch } from "./events";

/** Rows of the picture: the newest attempts. */
const kMostRows = 20;
const kTickWidth = 90; // pixels
const kPoints = 200;

interface Props {
  run: number;
  detail: RunDetail;
  probes: Resource<ProbesResponse>;
}

/** When the attempts at the run's trial were: as bars on one axis, or as a table of what happened. */
export function TimeLine({ run, detail, probes }: Props) {
  const [asTable, setAsTable] = useState(false);
  const points = useStepTimes(run, detail);
  const stretches = useMemo(
    () =>
      stretchesOf(detail.attempts, run, detail.checkpoints, probes.data?.probes ?? [], points, Date.now()),
    [run, detail, probes.data, points],
  );
  const events = useMemo(() => eventsOf(stretches), [stretches]);
  if (stretches.length === 0) return null;
  return (
    <section aria-labelledby="time-line">
      <h2 id="time-line">
        Time line
        <button type="button" class="quiet" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
          {asTable ? "Show as bars" : "Show as table"}
        </button>
      </h2>
      {asTable ? <EventTable events={events} current={run} /> : <Bars stretches={stretches} current={run} />}
    </section>
  );
}

/** When the run was at some of its steps, by one of its curves: a checkpoint tells its step alone. */
function useStepTimes(run: number, { summary, checkpoints }: RunDetail): StepTime[] {
  const most = summary.metrics
    .filter(({ name }) => !name.startsWith("probe:"))
    .reduce<{ name: string; count: number } | undefined>(
      (best, metric) => (best && best.count >= metric.count ? best : metric),
      undefined,
    )?.name;
  const path =
    most !== undefined && checkpoints.length > 0
      ? `/curves?run=${run}&name=${encodeURIComponent(most)}&width=${kPoints}&times=1`
      : null;
  // again for a further checkpoint, and not for each further point
  const curves = useResource<CurvesResponse>(path, () => false, `${path} ${checkpoints.length}`);
  return useMemo(() => {
    const curve = curves.data?.curves[0];
    return (curve?.steps ?? []).map((step, i) => ({ step, ms: Number(curve!.times_ms[i]) }));
  }, [curves.data]);
}

function Bars({ stretches, current }: { stretches: Stretch[]; current: number }) {
  const shown = stretches.slice(-kMostRows);
  const { element, width } = useWidth<HTMLDivElement>();
  const from = Math.min(...shown.map(({ leased }) => leased));
  const last = Math.max(...shown.map(({ end }) => end), from + 1000);
  // what was found long after would squeeze the bars
  const near = last + (last - from) / 10;
  const all = shown.flatMap((stretch) => stretch.marks);
  const marks = all.filter(({ ms }) => ms <= near);
  const to = Math.max(last, ...marks.map(({ ms }) => ms));
  const at = (ms: number): string => `${(100 * (ms - from)) / (to - from)}%`;
  const ticks = timeTicks(from, to, Math.max(2, Math.floor(width / kTickWidth)));
  const isMarked = (kind: string): boolean => marks.some((mark) => mark.kind === kind);
  const waited = shown.some(({ leased, started, end }) => (started ?? end) > leased);
  return (
    <div class="panel time-line">
      <div class="time-rows">
        {shown.map((stretch) => (
          <Row key={stretch.run.id} {...{ stretch, current, at, ticks, near }} />
        ))}
        <div class="time-axis num" ref={element} aria-hidden="true">
          {ticks.map(({ ms, text }) => (
            <span key={ms} style={{ left: at(ms) }}>
              {text}
            </span>
          ))}
        </div>
      </div>
      <p class="time-key muted">
        <span>
          {exactMoment(from)} to {exactMoment(to)}, your local time: {duration((to - from) / 1000)}.
        </span>
        {waited && (
          <span>
            <i class="time-leased" aria-hidden="true" /> leased, not started
          </span>
        )}
        {isMarked("checkpoint") && (
          <span>
            <i class="time-mark" aria-hidden="true" /> checkpoint of this run
          </span>
        )}
        {isMarked("probe") && (
          <span>
            <i class="time-mark time-probe" aria-hidden="true" /> probe stored
          </span>
        )}
        {all.length > marks.length && (
          <span>{plural(all.length - marks.length, "probe")} stored later: see the table.</span>
        )}
        {stretches.length > shown.length && (
          <span>{plural(stretches.length - shown.length, "earlier attempt")}: see the table.</span>
        )}
      </p>
    </div>
  );
}

interface RowProps {
  stretch: Stretch;
  current: number;
  at: (ms: number) => string;
  ticks: { ms: number }[];
  near: number;
}

function Row({ stretch, current, at, ticks, near }: RowProps) {
  const { run, leased, started, end, marks } = stretch;
  const width = (a: number, b: number): string => `calc(${at(b)} - ${at(a)})`;
  return (
    <>
      <div class="time-label">
        <span>
          <strong>{run.attempt}</strong>{" "}
          {run.id === current ? `run ${run.id}` : <Link href={runPath(run.id)}>run {run.id}</Link>}
        </span>
        <State state={run.state} />
        <span class="muted name" title={run.worker}>
          {run.worker}
        </span>
        <span class="muted num">
          {run.resumed_from_step !== undefined && `step ${whole(run.resumed_from_step)} → `}
          {run.resumed_from_step === undefined && "step "}
          {whole(run.step)}
        </span>
      </div>
      <div class="time-track" role="img" aria-label={sentence(stretch)}>
        {ticks.map(({ ms }) => (
          <span key={ms} class="time-tick" style={{ left: at(ms) }} />
        ))}
        <span
          class="time-leased"
          style={{ left: at(leased), width: width(leased, started ?? end) }}
          title={`leased ${exactMoment(leased)}`}
        />
        {started !== undefined && (
          <span
            class={`time-bar time-${stateWord(run.state)}`}
            style={{ left: at(started), width: width(started, end) }}
            title={`${exactMoment(started)} to ${stretch.isOver ? exactMoment(end) : "now"}: ${stateWord(run.state)}`}
          />
        )}
        {marks
          .filter(({ ms }) => ms <= near)
          .map(({ kind, ms, text }) => (
            <span
              key={text}
              class={`time-mark time-${kind}`}
              style={{ left: at(ms) }}
              title={`${text}, ${kind === "checkpoint" ? "about " : ""}${exactMoment(ms)}`}
            />
          ))}
      </div>
    </>
  );
}

/** The same in words, the earliest first. */
function sentence(stretch: Stretch): string {
  const { run, isOver } = stretch;
  const parts = eventsOf([stretch]).map(
    ({ ms, text, about }) => `${text} ${about ? "about " : ""}${exactMoment(ms)}`,
  );
  return `Attempt ${run.attempt}: ${parts.join(", ")}${isOver ? "" : `, at step ${whole(run.step)} now`}.`;
}

function EventTable({ events, current }: { events: Event[]; current: number }) {
  return (
    <TablePanel
      caption="What happened to the trial, by local time"
      tall
      head={
        <>
          <ColumnHead num>Time</ColumnHead>
          <ColumnHead num>Attempt</ColumnHead>
          <ColumnHead>Run</ColumnHead>
          <ColumnHead>Event</ColumnHead>
        </>
      }
    >
      {events.map(({ ms, run, text, about }) => (
        <tr key={`${run.id} ${text}`}>
          <td class="num">
            {about && <span class="muted">about </span>}
            <time dateTime={new Date(ms).toISOString()}>{exactMoment(ms)}</time>
          </td>
          <td class="num">{run.attempt}</td>
          <td>{run.id === current ? `run ${run.id}` : <Link href={runPath(run.id)}>run {run.id}</Link>}</td>
          <td>{text}</td>
        </tr>
      ))}
    </TablePanel>
  );
}
