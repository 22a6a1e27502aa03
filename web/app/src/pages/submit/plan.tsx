// SPDX-License-Identifier: Apache-2.0
import { Fact } from "../../components/fact";
import { ColumnHead, TablePanel } from "../../components/table_panel";
import { duration, plural, rowName, whole } from "../../format";
import type { PredictedTime, Real, SweepPlan } from "../../generated/ablate";

/** Rows that are listed; `ablate plan` lists all. */
const kRowsShown = 60;

/**
 * What a sweep file would run and need. `extends`: without totals, since the plan is of the whole sweep, of which most is stored.
 */
export function Plan(props: { plan: SweepPlan; busy: boolean; extends: boolean }) {
  const { plan, busy } = props;
  const left = plan.trials - plan.stored - plan.under_way - plan.held;
  const rows = plan.rows.slice(0, kRowsShown);
  const tuning = plan.tuning;
  return (
    <div class="plan" aria-busy={busy}>
      <dl class="facts panel">
        <Fact name="Trials">
          {whole(plan.trials)}
          <small>
            {plan.seeds > 0 &&
              `${plural(plan.rows.length, "row")} × ${plural(plan.seeds_min || plan.seeds, "seed")}`}
            {plan.seeds_min > 0 && `, up to ${whole(plan.seeds)}`}
          </small>
        </Fact>
        {!props.extends && (
          <>
            <Fact name="New trials">
              {whole(Math.max(0, left))}
              <small>
                {[
                  plan.stored > 0 && `${whole(plan.stored)} stored`,
                  plan.under_way > 0 && `${whole(plan.under_way)} under way`,
                  plan.held > 0 && `${whole(plan.held)} held`,
                ]
                  .filter(Boolean)
                  .join(", ") || "none stored yet"}
              </small>
            </Fact>
            <Fact name="GPU hours">
              {plan.gpu_hours ? hours(plan.gpu_hours.value) : "–"}
              <small title={plan.gpu_hours?.why}>
                {plan.gpu_hours
                  ? `${hours(plan.gpu_hours.low)} to ${hours(plan.gpu_hours.high)} (90 %)`
                  : plan.time_missing || "nothing left to run"}
              </small>
            </Fact>
            <Fact name="Complete in">
              {plan.forecast?.seconds === undefined ? "–" : duration(plan.forecast.seconds)}
              <small>{plan.forecast?.unknown}</small>
            </Fact>
          </>
        )}
        <Fact name="Memory per trial">
          {plan.memory_bytes === undefined ? "–" : memory(plan.memory_bytes)}
          <small>
            {plan.memory_bytes === undefined
              ? plan.memory_missing
              : plan.memory_device === "cuda"
                ? "GPU memory, largest row"
                : "whole process, largest row"}
          </small>
        </Fact>
        {(plan.resources || plan.gpus > 0) && (
          <Fact name="Resources">{plan.resources || plural(plan.gpus, "GPU")}</Fact>
        )}
      </dl>
      {tuning && (
        <p class="muted">
          {plural(tuning.trials, "tuning trial")} first
          {tuning.gpu_hours && `, ${hours(tuning.gpu_hours.value)} GPU hours`}.
        </p>
      )}
      {plan.submitted && !props.extends && (
        <p class="muted">Already stored: submitting it again queues nothing.</p>
      )}
      {plan.notes.map((note) => (
        <p key={note} class="plan-note">
          {note}
        </p>
      ))}
      {plan.counts_missing && <p class="muted">Parameters and MACs unknown: {plan.counts_missing}.</p>}
      <TablePanel
        caption="Rows of the plan"
        head={
          <>
            <ColumnHead>Row</ColumnHead>
            <ColumnHead num>Parameters</ColumnHead>
            <ColumnHead num title="Multiply-adds for one image">
              MACs
            </ColumnHead>
            <ColumnHead num>Memory</ColumnHead>
            <ColumnHead num>Time per trial</ColumnHead>
            <ColumnHead num>Trials</ColumnHead>
          </>
        }
      >
        {rows.map((row) => (
          <tr key={row.id}>
            <th scope="row">
              <span class="name" title={rowName(row.id, row.label)}>
                {rowName(row.id, row.label)}
              </span>
              {row.same_as && <div class="why">same configuration as row {row.same_as}</div>}
              {row.not_trained && <div class="why">not trained: {row.not_trained_why}</div>}
            </th>
            <td class="num">{amount(row.counts["params.all"])}</td>
            <td class="num">{amount(row.counts["flops.macs"])}</td>
            <td class="num">{row.memory_bytes === undefined ? "–" : memory(row.memory_bytes)}</td>
            <td class="num" title={range(row.time)}>
              {row.time ? duration(row.time.value) : "–"}
            </td>
            <td class="num">
              {whole(row.trials)}
              {row.stored > 0 && <span class="muted"> ({whole(row.stored)} stored)</span>}
            </td>
          </tr>
        ))}
      </TablePanel>
      {plan.rows.length > rows.length && (
        <p class="muted">
          {plural(plan.rows.length - rows.length, "more row")}: see <code>ablate plan</code>.
        </p>
      )}
    </div>
  );
}

function hours(value: Real): string {
  const number = Number(value);
  if (!Number.isFinite(number)) return "–";
  return number >= 100 ? whole(number) : number >= 0.1 ? number.toFixed(1) : number.toPrecision(1);
}

function range(time: PredictedTime | undefined): string | undefined {
  return time && `${duration(time.low)} to ${duration(time.high)} (90 %): ${time.why}`;
}

/** "21.9 M" */
function amount(count: Real | undefined): string {
  const number = Number(count);
  if (count === undefined || !Number.isFinite(number)) return "–";
  for (const [size, unit] of [
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ] as const)
    if (number >= size) return `${(number / size).toPrecision(3)} ${unit}`;
  return whole(number);
}

function memory(count: Real): string {
  const mib = Number(count) / 1024 / 1024;
  if (!Number.isFinite(mib)) return "–";
  return mib >= 1024 ? `${(mib / 1024).toFixed(1)} GiB` : `${Math.ceil(mib)} MiB`;
}
