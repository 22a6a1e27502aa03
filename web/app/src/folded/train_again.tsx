// SPDX-License-Identifier: Apache-2.0
import { messageOf } from "../api";
import { useBrief } from "../brief";
import { toClipboard } from "../clipboard";
import type { RunDetail } from "../generated/ablate";
import { inService, isCompleted, trainAgain } from "./train_again_text";

/** What to type to train a run's trial again: by itself, and in the service. */
export function TrainAgain({ detail }: { detail: RunDetail }) {
  const { lines, notes } = trainAgain(detail);
  const service = inService(detail);
  const completed = isCompleted(detail);
  return (
    <>
      <p>
        By itself, from the beginning, in an empty folder
        {notes.map((note) => `; ${note}`)}:
      </p>
      <Typed text={lines} name="the command that trains it by itself" />
      {service.length > 0 && (
        <>
          <p>
            {completed
              ? "In the service, with the row's other seeds; the new results take the place of these:"
              : "In the service, once it has failed or was cancelled:"}
          </p>
          <Typed text={service.join("\n")} name="the command for the service" />
        </>
      )}
    </>
  );
}

function Typed({ text, name }: { text: string; name: string }) {
  const [said, setSaid] = useBrief("");
  const copy = async (): Promise<void> => {
    try {
      await toClipboard(Promise.resolve(text));
      setSaid("Copied.");
    } catch (error) {
      setSaid(messageOf(error));
    }
  };
  return (
    <>
      <pre tabIndex={0} role="region" aria-label={name}>
        {text}
      </pre>
      <div class="actions">
        <button type="button" aria-label={`Copy ${name}`} onClick={() => void copy()}>
          Copy
        </button>
        <span role="status" class="muted">
          {said}
        </span>
      </div>
    </>
  );
}
