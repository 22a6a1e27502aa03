// SPDX-License-Identifier: Apache-2.0
import { Loaded, Notice } from "../../components/notice";
import { ColumnHead, TablePanel } from "../../components/table_panel";
import { plural, rowName, whole } from "../../format";
import type { QueuedSweep, QueuedTrial, QueueResponse } from "../../generated/ablate";
import type { Page } from "../../page";
import { useResource } from "../../resource";
import { Link, rowPath, sweepPath } from "../../router";

export const page: Page = {
  title: "Queue",
  nav: 3,
  View: QueuePage,
};

/** Who gets the next slots, and why the others wait. */
function QueuePage() {
  const queue = useResource<QueueResponse>("/queue", () => true);
  return (
    <>
      <h1 tabIndex={-1}>Queue</h1>
      <Loaded of={queue} what="The queue" lines={6}>
        {(data) =>
          data.sweeps.length === 0 ? (
            <Notice kind="empty" title="The queue is empty." />
          ) : (
            <>
              <p class="lead">
                {plural(data.waiting, "trial")} of{" "}
                {plural(data.sweeps.length + data.sweeps_left_out, "sweep")}{" "}
                {data.waiting === 1 ? "waits" : "wait"}. Highest priority first; then the owner who uses the
                fewest slots, then that owner's sweep with the fewest slots for its weight.
              </p>
              <Sweeps sweeps={data.sweeps} others={data.sweeps_left_out} />
              <Next trials={data.next} notes={data.notes} />
            </>
          )
        }
      </Loaded>
    </>
  );
}

function Sweeps({ sweeps, others }: { sweeps: QueuedSweep[]; others: number }) {
  return (
    <section aria-labelledby="sweeps">
      <h2 id="sweeps">Sweeps, in order</h2>
      <TablePanel
        caption="Waiting sweeps, the next to get a slot first"
        head={
          <>
            <ColumnHead>Sweep</ColumnHead>
            <ColumnHead num>Priority</ColumnHead>
            <ColumnHead>Owner</ColumnHead>
            <ColumnHead num>Slots</ColumnHead>
            <ColumnHead num>Weight</ColumnHead>
            <ColumnHead num>Waiting</ColumnHead>
            <ColumnHead>Why</ColumnHead>
          </>
        }
      >
        {sweeps.map((sweep) => (
          <tr key={sweep.sweep}>
            <th scope="row">
              <Link class="strong" href={sweepPath(sweep.sweep)} title={sweep.sweep}>
                <span class="name">{sweep.sweep}</span>
              </Link>
              {sweep.preempts && (
                <span class="tag" title="It may stop runs of lower priority">
                  preempts
                </span>
              )}
              {sweep.canary && (
                <span class="tag" title="It runs a few trials first">
                  canary
                </span>
              )}
            </th>
            <td class="num">{sweep.priority}</td>
            <td>
              <span class="name" title={sweep.owner}>
                {sweep.owner || "–"}
              </span>
            </td>
            <td class="num">
              {whole(sweep.slots)}
              {sweep.max_running > 0 && <span class="muted"> of {whole(sweep.max_running)}</span>}
            </td>
            <td class="num">{Number(sweep.weight)}</td>
            <td class="num">{whole(sweep.waiting)}</td>
            <td class="reason-text">
              {sweep.reasons.map((reason) => (
                <div key={reason.reason}>
                  {sweep.reasons.length > 1 && (
                    <span class="num">
                      {reason.estimated && "about "}
                      {whole(reason.trials)}:{" "}
                    </span>
                  )}
                  {reason.reason || <span class="muted">not known yet</span>}
                </div>
              ))}
            </td>
          </tr>
        ))}
      </TablePanel>
      {others > 0 && <p class="muted">and {plural(others, "more sweep")} behind these</p>}
    </section>
  );
}

function Next({ trials, notes }: { trials: QueuedTrial[]; notes: string[] }) {
  return (
    <section aria-labelledby="next">
      <h2 id="next">Next trials</h2>
      <p class="muted">
        The order in which trials start if suitable slots become free one at a time. A trial that fits no free
        slot is skipped.
      </p>
      {notes.map((note) => (
        <p key={note} class="muted">
          {note}
        </p>
      ))}
      {trials.length === 0 ? (
        <Notice kind="empty" title="No trial can start now.">
          Their sweeps run as many as they may, or they wait for another trial's weights.
        </Notice>
      ) : (
        <TablePanel
          caption="First trials in the queue"
          tall
          head={
            <>
              <ColumnHead num>Place</ColumnHead>
              <ColumnHead>Sweep</ColumnHead>
              <ColumnHead>Row</ColumnHead>
              <ColumnHead num>Seed</ColumnHead>
              <ColumnHead num>Slots</ColumnHead>
              <ColumnHead>Why it waits</ColumnHead>
            </>
          }
        >
          {trials.map((trial, i) => (
            <tr key={`${trial.trial} ${i}`}>
              <th scope="row" class="num">
                {i + 1}
              </th>
              <td>
                <span class="name" title={trial.sweep}>
                  {trial.sweep}
                </span>
              </td>
              {trial.trial === 0 ? (
                <>
                  <td class="muted">any of its trials</td>
                  <td class="num">–</td>
                  <td class="num">–</td>
                  <td>–</td>
                </>
              ) : (
                <>
                  <td>
                    <Link href={rowPath(trial.sweep, trial.row)} title={rowName(trial.row, trial.label)}>
                      <span class="name">{rowName(trial.row, trial.label)}</span>
                    </Link>
                  </td>
                  <td class="num">{trial.seed}</td>
                  <td class="num">{trial.slots}</td>
                  <td class="reason-text">{trial.reason || <span class="muted">–</span>}</td>
                </>
              )}
            </tr>
          ))}
        </TablePanel>
      )}
    </section>
  );
}
