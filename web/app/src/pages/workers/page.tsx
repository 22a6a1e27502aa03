// SPDX-License-Identifier: Apache-2.0
import { Loaded, Notice } from "../../components/notice";
import { sorted, SortHead, useOrder } from "../../components/sort";
import { moment, plural } from "../../format";
import type { ListWorkersResponse, Slot, WorkerSummary } from "../../generated/ablate";
import type { Page } from "../../page";
import { useResource } from "../../resource";
import { Link, runPath } from "../../router";

const busy = (worker: WorkerSummary): number => worker.runs.length;
const kKeys = {
  name: (w: WorkerSummary) => w.name,
  state: (w: WorkerSummary) => (w.connected ? 0 : 1),
  host: (w: WorkerSummary) => w.host,
  runs: busy,
  heartbeat: (w: WorkerSummary) => w.last_heartbeat,
};

export const page: Page = {
  title: "Workers",
  nav: 1,
  View: WorkersPage,
};

function WorkersPage() {
  const workers = useResource<ListWorkersResponse>("/workers", () => true);
  return (
    <>
      <h1 tabIndex={-1}>Workers</h1>
      <Loaded of={workers} what="Workers">
        {({ workers: list }) =>
          list.length === 0 ? (
            <Notice kind="empty" title="No worker has connected yet.">
              <p>
                <code>ablate up</code> starts one on this machine; <code>ablate-worker</code> is one for
                another.
              </p>
            </Notice>
          ) : (
            <>
              <p class="lead">{summary(list)}</p>
              <WorkerTable workers={list} />
            </>
          )
        }
      </Loaded>
    </>
  );
}

function summary(workers: WorkerSummary[]): string {
  const connected = workers.filter((w) => w.connected);
  const slots = connected.reduce((sum, worker) => sum + worker.slots.length, 0);
  const taken = connected.reduce((sum, worker) => sum + busy(worker), 0);
  return `${connected.length} of ${plural(workers.length, "worker")} connected, ${taken} of ${plural(slots, "slot")} busy`;
}

function WorkerTable({ workers }: { workers: WorkerSummary[] }) {
  const order = useOrder("sort");
  return (
    <div class="panel scroll">
      <table class="wide">
        <caption class="sr-only">Workers, their slots and what runs there</caption>
        <thead>
          <tr>
            <SortHead order={order} column="name">
              Worker
            </SortHead>
            <SortHead order={order} column="state">
              Connection
            </SortHead>
            <SortHead order={order} column="host">
              Host
            </SortHead>
            <th scope="col">Slots</th>
            <SortHead order={order} column="runs" highFirst>
              Running
            </SortHead>
            <th scope="col">Data</th>
            <th scope="col">Weights</th>
            <th scope="col">Version</th>
            <SortHead order={order} column="heartbeat" numeric highFirst>
              Last heard
            </SortHead>
          </tr>
        </thead>
        <tbody>
          {sorted(workers, order, kKeys).map((worker) => (
            <tr key={worker.name}>
              <th scope="row">
                <span class="strong">{worker.name}</span>
                {worker.connected && worker.note && <div class="why">{worker.note}</div>}
              </th>
              <td>
                <span class={`state state-${worker.connected ? "completed" : "lost"}`}>
                  <span class="dot" aria-hidden="true" />
                  {worker.connected ? "connected" : "gone"}
                </span>
              </td>
              <td>{worker.host}</td>
              <td>
                <ul class="slots">
                  {worker.slots.map((slot) => (
                    <SlotItem key={slot.index} slot={slot} />
                  ))}
                </ul>
              </td>
              <td>
                {worker.runs.length === 0 && <span class="muted">nothing</span>}
                {worker.runs.map((run) => (
                  <Link key={run} class="run" href={runPath(run)}>
                    run {run}
                  </Link>
                ))}
              </td>
              <td class="muted">{worker.data.join(", ") || "–"}</td>
              <td class="muted">{worker.weights.join(", ") || "–"}</td>
              <td class="muted">
                {worker.version || "–"}
                {worker.allows_commands && <div>runs commands</div>}
              </td>
              <td class="num">
                <time dateTime={worker.last_heartbeat}>{moment(worker.last_heartbeat)}</time>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function SlotItem({ slot }: { slot: Slot }) {
  return (
    <li class="slot">
      <span class="slot-device">{slot.device}</span>
      <span class="muted">{slot.name}</span>
    </li>
  );
}
