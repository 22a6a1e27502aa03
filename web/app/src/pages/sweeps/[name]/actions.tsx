// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { act, type Method } from "../../../acting/act";
import { ActionButton, AskingButton } from "../../../acting/button";
import { useCaller, whyNot } from "../../../acting/caller";
import type { Said } from "../../../acting/said";
import { stateWord } from "../../../components/state";
import { plural } from "../../../format";
import type { SweepSummary, TrialSummary } from "../../../generated/ablate";
import { Link, navigate, sweepPath } from "../../../router";

const kMethods: Method[] = [
  "PauseSweep",
  "ResumeSweep",
  "CancelSweep",
  "RetrySweep",
  "AdjustSweep",
  "RenameSweep",
  "AnnotateSweep",
  "ExtendSweep",
  "Submit",
];

/** Buttons for what the caller may do with a sweep in its present state. */
export function SweepActions({ sweep }: { sweep: SweepSummary }) {
  const caller = useCaller();
  const name = sweep.name;
  const may = (method: Method): boolean => caller?.may.includes(method) ?? false;
  const why = whyNot(caller, kMethods);
  if (why) return <p class="muted may-not">{why}</p>;
  const tuning = sweep.tuning?.trials;
  const underWay =
    sweep.trials.running + sweep.trials.leased + (tuning?.running ?? 0) + (tuning?.leased ?? 0);
  const waiting = sweep.trials.queued + (tuning?.queued ?? 0);
  const held = sweep.trials.held + (tuning?.held ?? 0);
  const failed = sweep.trials.failed + (tuning?.failed ?? 0);
  const cancelled = sweep.trials.cancelled + (tuning?.cancelled ?? 0);
  const isOpen = underWay + waiting + held > 0;
  const isPaused = sweep.state === "SWEEP_STATE_PAUSED";
  return (
    <div class="actions" role="group" aria-label={`Actions on sweep ${name}`}>
      {may("PauseSweep") && !isPaused && underWay + waiting > 0 && (
        <ActionButton label="Pause" run={() => pause(name)} />
      )}
      {may("ResumeSweep") && isPaused && <ActionButton label="Resume" run={() => resume(name)} />}
      {may("RetrySweep") && failed + cancelled > 0 && (
        <ActionButton
          label={`Retry ${listed({ failed, cancelled, held })}`}
          run={() => retry({ sweep: name })}
        />
      )}
      {may("RetrySweep") && held > 0 && (
        <ActionButton label={`Release ${held} held`} run={() => retry({ sweep: name, only_held: true })} />
      )}
      {may("RetrySweep") && sweep.trials.unfilled > 0 && (
        <ActionButton
          label={`Rerun ${sweep.trials.unfilled} without all metrics`}
          run={() => retry({ sweep: name, unfilled: true })}
        />
      )}
      {may("AdjustSweep") && isOpen && <StandingButton sweep={sweep} />}
      {may("ExtendSweep") && (
        <Link class="button" href={`/submit?extend=${encodeURIComponent(name)}`}>
          Extend…
        </Link>
      )}
      {may("Submit") && (
        <Link class="button" href={`/submit?from=${encodeURIComponent(name)}`}>
          Copy file…
        </Link>
      )}
      {may("RenameSweep") && !sweep.tunes && <RenameButton name={name} />}
      {may("AnnotateSweep") && <TagsButton sweep={sweep} />}
      {may("AnnotateSweep") && !isOpen && !sweep.archived && (
        <ActionButton label="Archive" run={() => archive(name, true)} />
      )}
      {may("AnnotateSweep") && sweep.archived && (
        <ActionButton label="Unarchive" run={() => archive(name, false)} />
      )}
      {may("CancelSweep") && isOpen && (
        <AskingButton
          label="Cancel…"
          title={`Cancel ${name}?`}
          verb="Cancel the sweep"
          ends
          run={async () => {
            await act("CancelSweep", { sweep: name });
            return {
              about: name,
              text: `Cancelled ${name}.`,
              undo: { label: "Retry it", run: () => retry({ sweep: name }) },
            };
          }}
        >
          <Loss underWay={underWay} waiting={waiting + held} />
        </AskingButton>
      )}
    </div>
  );
}

/** "2 failed, 1 cancelled": counts above 0. */
function listed(counts: Record<string, number>): string {
  return Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([what, count]) => `${count} ${what}`)
    .join(", ");
}

function Loss({ underWay, waiting }: { underWay: number; waiting: number }) {
  return (
    <ul>
      {underWay > 0 && (
        <li>
          <strong>{plural(underWay, "running trial")}</strong> {underWay === 1 ? "stops" : "stop"}, unless
          another sweep needs the same trials; progress since the last checkpoint is lost.
        </li>
      )}
      {waiting > 0 && <li>{plural(waiting, "waiting trial")} will not run.</li>}
      <li>Stored results are kept.</li>
    </ul>
  );
}

async function pause(sweep: string): Promise<Said> {
  const paused = await act("PauseSweep", { sweep });
  const running = paused.trials.running + paused.trials.leased;
  const about = sweep;
  if (running === 0)
    return { text: `Paused ${sweep}.`, about, undo: { label: "Resume", run: () => resume(sweep) } };
  return {
    about,
    text: `Paused ${sweep}: ${plural(running, "running trial")} ${running === 1 ? "continues" : "continue"} to the end.`,
    undo: {
      label: running === 1 ? "Stop it too" : "Stop them too",
      run: async () => {
        await act("PauseSweep", { sweep, stop_running: true });
        return {
          about,
          text: `Running trials of ${sweep} write a checkpoint and go back to the queue.`,
          undo: { label: "Resume", run: () => resume(sweep) },
        };
      },
    },
  };
}

async function resume(sweep: string): Promise<Said> {
  await act("ResumeSweep", { sweep });
  return { text: `Resumed ${sweep}.`, about: sweep, undo: { label: "Pause again", run: () => pause(sweep) } };
}

async function archive(sweep: string, archived: boolean): Promise<Said> {
  await act("AnnotateSweep", { sweep, archived });
  return {
    about: sweep,
    text: archived
      ? `Archived ${sweep}: lists leave it out; results and links stay.`
      : `${sweep} is in the lists again.`,
    undo: {
      label: archived ? "Unarchive" : "Archive again",
      run: () => archive(sweep, !archived).then(({ text }) => ({ text, about: sweep })),
    },
  };
}

type Retried = Parameters<typeof act<"RetrySweep">>[1];
export async function retry(request: Retried): Promise<Said> {
  const { retried } = await act("RetrySweep", request);
  return {
    ...(request.sweep && !request.row && { about: request.sweep }),
    text:
      retried === 0
        ? "Nothing requeued: no trial has failed, was cancelled or is held."
        : `${plural(retried, "trial")} requeued.`,
  };
}

/** Sets what the queue orders sweeps by. */
function StandingButton({ sweep }: { sweep: SweepSummary }) {
  const now = () => ({
    priority: String(sweep.priority),
    weight: String(sweep.weight),
    max_running: String(sweep.max_running),
  });
  const [fields, setFields] = useState(now);
  const set = (field: keyof typeof fields) => (event: { currentTarget: HTMLInputElement }) =>
    setFields({ ...fields, [field]: event.currentTarget.value });
  const adjust = async (to: { priority: number; weight: number; max_running: number }): Promise<Said> => {
    const before = { priority: sweep.priority, weight: sweep.weight, max_running: sweep.max_running };
    const is = await act("AdjustSweep", { sweep: sweep.name, ...to });
    return {
      about: is.name,
      text: `${is.name}: priority ${is.priority}, weight ${is.weight}, ${
        is.max_running === 0
          ? "no limit on running trials"
          : `at most ${plural(is.max_running, "running trial")}`
      }.`,
      undo: {
        label: "Undo",
        run: async () => {
          await act("AdjustSweep", { sweep: sweep.name, ...before });
          return { text: `${is.name}: priority ${before.priority} again.`, about: is.name };
        },
      },
    };
  };
  return (
    <AskingButton
      label="Priority…"
      title={`Priority of ${sweep.name}`}
      verb="Set"
      onOpen={() => setFields(now())}
      run={() =>
        adjust({
          priority: Number(fields.priority),
          weight: Number(fields.weight),
          max_running: Number(fields.max_running),
        })
      }
    >
      <label class="field">
        Priority
        <input
          type="number"
          min="-1000"
          max="1000"
          step="1"
          required
          value={fields.priority}
          onInput={set("priority")}
        />
        <small>Higher runs first.</small>
      </label>
      <label class="field">
        Weight
        <input
          type="number"
          min="0.001"
          max="1000000"
          step="any"
          required
          value={fields.weight}
          onInput={set("weight")}
        />
        <small>Share of its owner's slots: 2 gets twice as many as 1.</small>
      </label>
      <label class="field">
        Running trials, at most
        <input
          type="number"
          min="0"
          max="1000000"
          step="1"
          required
          value={fields.max_running}
          onInput={set("max_running")}
        />
        <small>0: no limit.</small>
      </label>
    </AskingButton>
  );
}

/** Sets the tags of a sweep, as words with spaces between. */
function TagsButton({ sweep }: { sweep: SweepSummary }) {
  const [text, setText] = useState("");
  const set = async (before: string[], after: string[]): Promise<Said> => {
    const { name, tags } = await act("AnnotateSweep", {
      sweep: sweep.name,
      add_tags: after.filter((tag) => !before.includes(tag)),
      remove_tags: before.filter((tag) => !after.includes(tag)),
    });
    return {
      about: name,
      text: tags.length > 0 ? `${name}: tags ${tags.join(", ")}.` : `${name} has no tags.`,
    };
  };
  return (
    <AskingButton
      label="Tags…"
      title={`Tags of ${sweep.name}`}
      verb="Set"
      onOpen={() => setText(sweep.tags.join(" "))}
      run={async () => {
        const before = sweep.tags;
        const after = text.split(/[\s,]+/).filter(Boolean);
        return {
          ...(await set(before, after)),
          undo: { label: "Undo", run: () => set(after, before) },
        };
      }}
    >
      <label class="field">
        Tags
        <input
          type="text"
          spellcheck={false}
          autocomplete="off"
          pattern="[A-Za-z0-9._\-\/\s,]*"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <small>
          Words of letters, digits, “.”, “_”, “-” and “/”, with spaces between. <code>tag:word</code> finds
          them.
        </small>
      </label>
    </AskingButton>
  );
}

function RenameButton({ name }: { name: string }) {
  const [to, setTo] = useState(name);
  const rename = async (from: string, into: string): Promise<Said> => {
    await act("RenameSweep", { sweep: from, name: into });
    navigate(sweepPath(into), "replace");
    return {
      text: `Renamed ${from} to ${into}.`,
      undo: { label: "Undo", run: () => rename(into, from).then(({ text }) => ({ text })) },
    };
  };
  return (
    <AskingButton
      label="Rename…"
      title={`Rename ${name}`}
      verb="Rename"
      onOpen={() => setTo(name)}
      run={() => rename(name, to.trim())}
    >
      <label class="field">
        New name
        <input
          type="text"
          required
          maxLength={100}
          pattern="[A-Za-z0-9._\-]+"
          spellcheck={false}
          value={to}
          onInput={(event) => setTo(event.currentTarget.value)}
        />
        <small>Letters, digits, “.”, “_” and “-”. Links to the old name will break.</small>
      </label>
    </AskingButton>
  );
}

/** Buttons for the row that the page is narrowed to. */
export function RowActions({ sweep, row, trials }: { sweep: string; row: string; trials: TrialSummary[] }) {
  const caller = useCaller();
  if (!caller?.may.includes("RetrySweep")) return null;
  const of = trials.filter((trial) => trial.row === row);
  const ended = of.filter((trial) => ["failed", "cancelled", "held"].includes(stateWord(trial.state))).length;
  const completed = of.filter((trial) => stateWord(trial.state) === "completed").length;
  return (
    <span class="actions" role="group" aria-label={`Actions on row ${row}`}>
      {ended > 0 && (
        <ActionButton quiet label={`Retry ${ended} in this row`} run={() => retry({ sweep, row })} />
      )}
      {completed > 0 && (
        <AskingButton
          quiet
          label="Rerun…"
          title={`Rerun row ${row}?`}
          verb={`Rerun ${plural(completed, "trial")}`}
          run={() => retry({ sweep, rerun: [row] })}
        >
          <ul>
            <li>
              {plural(completed, "new trial")} with the same configuration and{" "}
              {completed === 1 ? "seed starts" : "seeds start"} from step 0.
            </li>
            <li>
              Until {completed === 1 ? "it completes" : "they complete"}, the row's cells lack{" "}
              {completed === 1 ? "its value" : "their values"}.
            </li>
            <li>Stored results are kept.</li>
          </ul>
        </AskingButton>
      )}
    </span>
  );
}

/** The button at the end of a trial's line. */
export function TrialActions({ sweep, trial }: { sweep: string; trial: TrialSummary }) {
  const caller = useCaller();
  const state = stateWord(trial.state);
  const which = { sweep, row: trial.row, seed: trial.seed };
  const of = `row ${trial.row}, seed ${trial.seed}`;
  if (["failed", "cancelled", "held"].includes(state) && caller?.may.includes("RetrySweep"))
    return <ActionButton quiet label="Retry" name={`Retry ${of}`} run={() => retry(which)} />;
  if (["queued", "leased", "running"].includes(state) && caller?.may.includes("CancelTrial"))
    return <CancelTrialButton {...which} label="Cancel…" running={state !== "queued"} />;
  return null;
}

/** Cancels a trial for one sweep. */
export function CancelTrialButton(props: {
  sweep: string;
  row: string;
  seed: string;
  label: string;
  running: boolean;
}) {
  const { sweep, row, seed } = props;
  const of = `row ${row}, seed ${seed}`;
  return (
    <AskingButton
      quiet
      label={props.label}
      name={`Cancel ${of} of ${sweep}`}
      title={`Cancel ${of}?`}
      verb="Cancel the trial"
      ends
      run={async () => {
        await act("CancelTrial", { sweep, row, seed });
        return {
          text: `Cancelled ${of} of ${sweep}.`,
          undo: { label: "Retry it", run: () => retry({ sweep, row, seed }) },
        };
      }}
    >
      <ul>
        {props.running && (
          <li>
            It stops, unless another row or sweep needs the same trial; progress since the last checkpoint is
            lost.
          </li>
        )}
        <li>The row's cells in the table of {sweep} will lack this seed. Other trials continue.</li>
      </ul>
    </AskingButton>
  );
}
