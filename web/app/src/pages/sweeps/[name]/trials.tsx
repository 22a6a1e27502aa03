// SPDX-License-Identifier: Apache-2.0
import { useCallback, useMemo } from "preact/hooks";
import { useCaller } from "../../../acting/caller";
import { Notice } from "../../../components/notice";
import { StepsBar } from "../../../components/progress";
import { sorted, SortHead, useOrder } from "../../../components/sort";
import { State, stateWord } from "../../../components/state";
import { LongTable } from "../../../components/table_panel";
import { duration, plain, plural, rate, sameName, whole } from "../../../format";
import type { Table, TrialSummary } from "../../../generated/ablate";
import { Link, navigate, runPath, useAddress, withQuery } from "../../../router";
import { TrialActions } from "./actions";

const kStates = ["running", "leased", "queued", "completed", "failed", "held", "cancelled"];

/** The units of work behind the table: where each stands, how fast it goes, and why it waits or failed. */
export function Trials({
  sweep,
  trials,
  others,
  table,
  row,
}: {
  sweep: string;
  trials: TrialSummary[];
  /** How many more there are. */
  others: number;
  table: Table;
  row: string | null;
}) {
  const order = useOrder("trials");
  const acts = useCaller()?.may.includes("CancelTrial") ?? false;
  const wanted = useAddress().searchParams.get("state");
  const metric = table.columns.find((column) => column.kind === "KIND_METRIC")?.source;
  const ofRow = trials.filter((trial) => row === null || trial.row === row);
  const shown = ofRow.filter((trial) => wanted === null || stateWord(trial.state) === wanted);
  const place = new Map(table.rows.map((r, i) => [r.id, i]));
  const keys = {
    row: (t: TrialSummary) => place.get(t.row),
    seed: (t: TrialSummary) => Number(t.seed),
    state: (t: TrialSummary) => kStates.indexOf(stateWord(t.state)),
    progress: (t: TrialSummary) => (t.total_steps ? t.step / t.total_steps : undefined),
    rate: (t: TrialSummary) => t.steps_per_second || undefined,
    eta: (t: TrialSummary) => t.eta_seconds,
    last: (t: TrialSummary) => (metric && t.last[metric] !== undefined ? Number(t.last[metric]) : undefined),
    worker: (t: TrialSummary) => t.worker,
    attempt: (t: TrialSummary) => t.attempt,
  };
  const lines = useMemo(
    () => sorted(shown, order, keys),
    [trials, table, row, wanted, order.column, order.descending],
  );
  const line = useCallback(
    (place: number, index: number | undefined) => {
      const trial = lines[place]!;
      return (
        <TrialRow
          key={trial.id + trial.row}
          trial={trial}
          metric={metric}
          sweep={acts ? sweep : undefined}
          index={index}
        />
      );
    },
    [lines, metric, acts, sweep],
  );
  return (
    <>
      <div class="controls">
        <label>
          State
          <select
            value={wanted ?? ""}
            onChange={(event) => navigate(withQuery({ state: event.currentTarget.value || null }))}
          >
            <option value="">any ({ofRow.length})</option>
            {kStates.map((state) => (
              <option key={state} value={state}>
                {state} ({ofRow.filter((trial) => stateWord(trial.state) === state).length})
              </option>
            ))}
          </select>
        </label>
        {others > 0 && (
          <span class="muted">
            Trials of the rows above: {whole(trials.length)} of {whole(trials.length + others)}.
          </span>
        )}
      </div>
      {shown.length === 0 ? (
        <Notice kind="empty" title="No trials in this state." />
      ) : (
        <LongTable
          caption="Trials"
          class="trials"
          count={lines.length}
          line={line}
          head={
            <>
              <SortHead order={order} column="row">
                Row
              </SortHead>
              <SortHead order={order} column="seed" numeric>
                Seed
              </SortHead>
              <SortHead order={order} column="state">
                State
              </SortHead>
              <SortHead order={order} column="progress" highFirst>
                Progress
              </SortHead>
              <SortHead order={order} column="rate" numeric highFirst>
                Steps/s
              </SortHead>
              <SortHead order={order} column="eta" numeric>
                Time left
              </SortHead>
              {metric && (
                <SortHead order={order} column="last" numeric highFirst>
                  {metric}
                </SortHead>
              )}
              <SortHead order={order} column="worker">
                Worker
              </SortHead>
              <SortHead order={order} column="attempt" numeric highFirst>
                Run
              </SortHead>
              {acts && (
                <th scope="col">
                  <span class="sr-only">Actions</span>
                </th>
              )}
            </>
          }
        />
      )}
    </>
  );
}

/** `cut`: to one line, whole where the pointer or the focus is on it. */
function Why({ texts, cut }: { texts: string[]; cut: boolean }) {
  if (cut && texts.length > 0) {
    const text = texts.join("; ");
    return (
      <div class="why" title={text} tabIndex={0}>
        {text}
      </div>
    );
  }
  return (
    <>
      {texts.map((text) => (
        <div key={text} class="why">
          {text}
        </div>
      ))}
    </>
  );
}

/** Why it waits, failed, or has results that are not what they seem. */
function whyTexts(trial: TrialSummary): string[] {
  return [
    trial.reason,
    trial.unfilled ? "missing: it did not report a metric of the table" : "",
    trial.refused_lines > 0
      ? `${plural(trial.refused_lines, "metric report")} refused, such as ${trial.refused_example}`
      : "",
    trial.before_mend ? `made before a correction: ${trial.before_mend}` : "",
  ].filter(Boolean);
}

interface RowProps {
  trial: TrialSummary;
  metric: string | undefined;
  /** Its trials can be acted on here. */
  sweep: string | undefined;
  /** Its place, where not all lines are drawn. */
  index: number | undefined;
}

function TrialRow({ trial, metric, sweep, index }: RowProps) {
  const running = stateWord(trial.state) === "running";
  return (
    <tr aria-rowindex={index}>
      <th scope="row">
        <span class="row-name">
          {!sameName(trial.row, trial.label) && <span class="row-id name">{trial.row}</span>}
          <span class="name" title={trial.label}>
            {trial.label}
          </span>
        </span>
      </th>
      <td class="num">{trial.seed}</td>
      <td class="trial-state">
        <State state={trial.state} />
        {trial.shared && (
          <span class="tag" title="Another sweep has this trial too: it is trained once">
            shared
          </span>
        )}
        <Why texts={whyTexts(trial)} cut={index !== undefined} />
      </td>
      <td>
        <StepsBar step={trial.step} total={trial.total_steps} />
      </td>
      <td class="num">{running ? rate(trial.steps_per_second) : "–"}</td>
      <td class="num">{running ? duration(trial.eta_seconds) : "–"}</td>
      {metric && <td class="num">{plain(trial.last[metric])}</td>}
      <td>{trial.worker || "–"}</td>
      <td class="num">
        {trial.run ? (
          <Link href={runPath(trial.run)}>
            run {trial.run}
            {trial.attempt > 1 && <span class="muted"> (attempt {trial.attempt})</span>}
          </Link>
        ) : (
          "–"
        )}
      </td>
      {sweep !== undefined && (
        <td>
          <TrialActions sweep={sweep} trial={trial} />
        </td>
      )}
    </tr>
  );
}
