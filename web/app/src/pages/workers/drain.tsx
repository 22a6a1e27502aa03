// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { act } from "../../acting/act";
import { ActionButton, AskingButton } from "../../acting/button";
import { useCaller } from "../../acting/caller";
import type { Said } from "../../acting/said";
import { plural } from "../../format";
import type { WorkerSummary } from "../../generated/ablate";

async function putBack(name: string): Promise<Said> {
  await act("DrainWorker", { name, resume: true });
  return { text: `${name} gets trials again.` };
}

/** Stops giving trials to a worker, or gives it trials again. */
export function DrainButton({ worker }: { worker: WorkerSummary }) {
  const caller = useCaller();
  const [reason, setReason] = useState("");
  const [stops, setStops] = useState(false);
  const { name } = worker;
  if (!caller?.may.includes("DrainWorker")) return null;
  if (worker.drained !== undefined || worker.quarantine)
    return (
      <ActionButton quiet label="Put back" name={`Give ${name} trials again`} run={() => putBack(name)} />
    );
  return (
    <AskingButton
      quiet
      label="Drain…"
      name={`Drain ${name}`}
      title={`Drain ${name}?`}
      verb="Drain"
      ends={stops}
      onOpen={() => {
        setReason("");
        setStops(false);
      }}
      run={async () => {
        await act("DrainWorker", { name, reason: reason.trim(), stop_running: stops });
        return {
          text: `${name} gets no more trials.`,
          undo: { label: "Put back", run: () => putBack(name) },
        };
      }}
    >
      <p>
        It gets no more trials until you put it back, even after a restart of the worker or the scheduler.
      </p>
      <label class="field">
        Reason, shown to others
        <input
          type="text"
          maxLength={200}
          value={reason}
          onInput={(event) => setReason(event.currentTarget.value)}
        />
      </label>
      {worker.runs.length > 0 && (
        <label class="check">
          <input
            type="checkbox"
            checked={stops}
            onChange={(event) => setStops(event.currentTarget.checked)}
          />
          Stop its {plural(worker.runs.length, "run")} too:{" "}
          {worker.runs.length === 1 ? "it writes" : "they write"} a checkpoint and{" "}
          {worker.runs.length === 1 ? "goes" : "go"} back to the queue
        </label>
      )}
    </AskingButton>
  );
}
