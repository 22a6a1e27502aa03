// SPDX-License-Identifier: Apache-2.0
import { Loaded, Notice } from "../../components/notice";
import { firstOf, Pager } from "../../components/pager";
import { sorted, SortHead, useOrder } from "../../components/sort";
import { ColumnHead, TablePanel } from "../../components/table_panel";
import { bytes, moment, plural, whole } from "../../format";
import type { ListWorkersResponse, Slot, WorkerSummary } from "../../generated/ablate";
import type { Page } from "../../page";
import { useResource } from "../../resource";
import { Link, runPath, useAddress } from "../../router";
import { DrainButton } from "./drain";

const busySlots = (worker: WorkerSummary): number => worker.slots.filter((slot) => slot.run > 0).length;
const use = (worker: WorkerSummary): number => busySlots(worker) / Math.max(1, worker.slots.length);
const kKeys = {
  name: (w: WorkerSummary) => w.name,
  state: (w: WorkerSummary) => kStates.indexOf(stateOf(w)),
  host: (w: WorkerSummary) => w.host,
  runs: use,
  heartbeat: (w: WorkerSummary) => w.last_heartbeat,
};

/** Workers that the server answers at once. */
const kServed = 500;

export const page: Page = {
  title: "Workers",
  nav: 4,
  View: WorkersPage,
};

function WorkersPage() {
  const first = firstOf(useAddress().searchParams);
  const workers = useResource<ListWorkersResponse>(
    first > 0 ? `/workers?first=${first}` : "/workers",
    () => true,
    "workers",
  );
  return (
    <>
      <h1 tabIndex={-1}>Workers</h1>
      <Loaded of={workers} what="Workers">
        {({ workers: list, left_out: others }) =>
          list.length + others === 0 ? (
            <Notice kind="empty" title="No workers yet.">
              <p>
                <code>ablate up</code> starts one on this machine, <code>ablate-worker</code> one on another.
              </p>
            </Notice>
          ) : (
            <>
              <p class="lead">
                {others > 0 && "Of these: "}
                {summary(list)}
              </p>
              <Pager
                first={first}
                size={kServed}
                total={list.length + others}
                what="Workers"
                note="connected ones come first; sorting is within these."
              />
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
  const busy = connected.reduce((sum, worker) => sum + busySlots(worker), 0);
  const runs = connected.reduce((sum, worker) => sum + worker.runs.length, 0);
  return `${connected.length} of ${plural(workers.length, "worker")} connected, ${busy} of ${plural(slots, "slot")} in use by ${plural(runs, "run")}`;
}

/** In sort order: those that need attention first. */
const kStates = ["in trouble", "quarantine", "drained", "gone", "connected"] as const;

function stateOf(worker: WorkerSummary): (typeof kStates)[number] {
  if (worker.connected && worker.trouble) return "in trouble";
  if (worker.connected && worker.quarantine) return "quarantine";
  if (worker.drained !== undefined) return "drained";
  return worker.connected ? "connected" : "gone";
}
/** The class of a state whose colour it has. */
const kLooks = {
  "in trouble": "failed",
  quarantine: "held",
  drained: "paused",
  gone: "lost",
  connected: "completed",
} as const;

function WorkerTable({ workers }: { workers: WorkerSummary[] }) {
  const order = useOrder("sort");
  return (
    <TablePanel
      caption="Workers, their slots and what runs there"
      head={
        <>
          <SortHead order={order} column="name">
            Worker
          </SortHead>
          <SortHead order={order} column="state">
            State
          </SortHead>
          <SortHead order={order} column="host">
            Host
          </SortHead>
          <SortHead order={order} column="runs" highFirst>
            Slots
          </SortHead>
          <ColumnHead>Data</ColumnHead>
          <ColumnHead>Weights</ColumnHead>
          <ColumnHead>Version</ColumnHead>
          <SortHead order={order} column="heartbeat" numeric highFirst>
            Last heard
          </SortHead>
        </>
      }
    >
      {sorted(workers, order, kKeys).map((worker) => (
        <WorkerRow key={worker.name} worker={worker} />
      ))}
    </TablePanel>
  );
}

function WorkerRow({ worker }: { worker: WorkerSummary }) {
  const state = stateOf(worker);
  const labels = Object.entries(worker.labels).filter(([key]) => key !== "host" && key !== "name");
  return (
    <tr>
      <th scope="row">
        <span class="strong name" title={worker.name}>
          {worker.name}
        </span>
        <DrainButton worker={worker} />
        {worker.note && worker.note !== "not connected" && <div class="why">{worker.note}</div>}
        {labels.length > 0 && (
          <div class="labels">
            {labels.map(([key, value]) => (
              <span key={key} class="tag" title={`${key}=${value}`}>
                {key}={value}
              </span>
            ))}
          </div>
        )}
      </th>
      <td>
        <span class={`state state-${kLooks[state]}`}>
          <span class="dot" aria-hidden="true" />
          {state}
        </span>
        {worker.quarantined_until && (
          <div class="muted">
            until <time dateTime={worker.quarantined_until}>{moment(worker.quarantined_until)}</time>
          </div>
        )}
      </td>
      <td>
        <span class="name" title={worker.host}>
          {worker.host}
        </span>
      </td>
      <td>
        <SlotList worker={worker} />
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
  );
}

/** Each slot with its runs; then runs without a slot here: they wait for one, or are led by another worker. */
function SlotList({ worker }: { worker: WorkerSummary }) {
  const shown = new Set(worker.slots.flatMap((slot) => [slot.run, ...slot.beside]));
  const others = worker.runs.filter((run) => !shown.has(run));
  const parts = worker.parts.filter((run) => !shown.has(run));
  return (
    <>
      <ul class="slots">
        {worker.slots.map((slot) => (
          <SlotItem key={slot.index} slot={slot} />
        ))}
      </ul>
      {others.length > 0 && <RunLinks what="also here" runs={others} />}
      {parts.length > 0 && <RunLinks what="takes part in" runs={parts} />}
      <div class="muted num">
        {[
          `${whole(Math.round(100 * use(worker)))} % in use`,
          worker.gpu !== undefined && `GPU ${whole(Math.round(100 * Number(worker.gpu)))} %`,
          worker.cpu_cores !== undefined && `CPU ${Number(worker.cpu_cores).toFixed(1)} cores`,
        ]
          .filter(Boolean)
          .join(" · ")}
      </div>
    </>
  );
}

function RunLinks({ what, runs }: { what: string; runs: number[] }) {
  return (
    <div class="slot">
      <span class="muted">{what}</span>
      {runs.map((run) => (
        <Link key={run} class="run" href={runPath(run)}>
          run {run}
        </Link>
      ))}
    </div>
  );
}

function SlotItem({ slot }: { slot: Slot }) {
  const memory = Number(slot.memory_bytes);
  return (
    <li class="slot">
      <span class="slot-device">{slot.device}</span>
      <span class="muted" title={memory > 0 ? `${bytes(memory)} of memory` : undefined}>
        {slot.name}
      </span>
      {slot.run > 0 ? (
        [slot.run, ...slot.beside].map((run) => (
          <Link key={run} class="run" href={runPath(run)}>
            run {run}
          </Link>
        ))
      ) : (
        <span class="muted">free</span>
      )}
      {slot.beside.length > 0 && <span class="tag">shared by {whole(slot.beside.length + 1)}</span>}
    </li>
  );
}
