// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import { Loaded } from "../components/notice";
import { State } from "../components/state";
import { ColumnHead, TablePanel } from "../components/table_panel";
import type { SweepEvent, SweepEventsResponse } from "../generated/ablate";
import { useResource } from "../resource";
import { Link, rowPath, runPath } from "../router";
import { exactMoment } from "../time_axis";

const kShown = 100;

/** What was asked of a sweep, and what became of its trials, newest first; a page of it at a time. */
export function Events({ sweep }: { sweep: string }) {
  const [before, setBefore] = useState("");
  const events = useResource<SweepEventsResponse>(
    `/sweeps/${encodeURIComponent(sweep)}/events?count=${kShown}${before && `&before=${before}`}`,
    (change) => change.sweep === sweep,
    `events ${sweep}`,
  );
  const data = events.data;
  // much happened to other sweeps since: what is looked at in one read had nothing of this one
  const goOn = data?.events.length === 0 && data.next;
  useEffect(() => {
    if (goOn) setBefore(goOn);
  }, [goOn]);
  return (
    <Loaded of={goOn ? {} : events} what="The events" lines={5}>
      {({ events: shown, next }) => (
        <>
          {shown.length === 0 ? (
            <p class="muted">No older events are kept.</p>
          ) : (
            <TablePanel
              caption="Events of the sweep, newest first, by local time"
              tall
              head={
                <>
                  <ColumnHead num>Time</ColumnHead>
                  <ColumnHead>Event</ColumnHead>
                  <ColumnHead>Row</ColumnHead>
                  <ColumnHead num>Seed</ColumnHead>
                  <ColumnHead>Run</ColumnHead>
                  <ColumnHead>Reason</ColumnHead>
                </>
              }
            >
              {shown.map((event, i) => (
                <Line key={i} sweep={sweep} event={event} />
              ))}
            </TablePanel>
          )}
          <div class="actions">
            {next && (
              <button type="button" onClick={() => setBefore(next)}>
                Show older
              </button>
            )}
            {before && (
              <button type="button" onClick={() => setBefore("")}>
                Show newest
              </button>
            )}
          </div>
        </>
      )}
    </Loaded>
  );
}

function Line({ sweep, event }: { sweep: string; event: SweepEvent }) {
  const { time, request, who, state, row, seed, run, reason } = event;
  return (
    <tr>
      <td class="num">
        <time dateTime={time}>{exactMoment(Date.parse(time))}</time>
      </td>
      <td>
        {request ? (
          <>
            {wordsOf(request)}
            {who && <span class="muted"> by {who}</span>}
          </>
        ) : (
          <State state={state} />
        )}
      </td>
      <td>{row && <Link href={rowPath(sweep, row)}>{row}</Link>}</td>
      <td class="num">{row && seed}</td>
      <td>{run > 0 && <Link href={runPath(run)}>run {run}</Link>}</td>
      <td>{reason}</td>
    </tr>
  );
}

/** "PauseSweep" -> "pause", "CancelTrial" -> "cancel trial". */
function wordsOf(request: string): string {
  return request
    .replace(/Sweep$/, "")
    .replace(/(?<=[a-z])(?=[A-Z])/g, " ")
    .toLowerCase();
}
