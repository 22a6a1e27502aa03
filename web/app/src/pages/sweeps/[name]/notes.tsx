// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { act } from "../../../acting/act";
import { AskingButton } from "../../../acting/button";
import { useCaller } from "../../../acting/caller";
import type { Said } from "../../../acting/said";
import { ApiError } from "../../../api";
import { Loaded } from "../../../components/notice";
import { useLate } from "../../../late";

const markdown = () => import("../../../markdown/markdown");

/** What people wrote about a sweep. */
export function Notes({ sweep, notes }: { sweep: string; notes: string }) {
  const mayWrite = useCaller()?.may.includes("AnnotateSweep") ?? false;
  if (notes === "" && !mayWrite) return null;
  return (
    // one element, whether there are notes or not: its dialog, with what is being written, outlives the first note of somebody else
    <section class={notes ? "sweep-notes panel" : "no-notes"} aria-label={notes ? "Notes" : undefined}>
      {notes && <Rendered text={notes} />}
      {mayWrite && <EditNotes sweep={sweep} notes={notes} />}
    </section>
  );
}

function Rendered({ text }: { text: string }) {
  return (
    <Loaded of={useLate(markdown)} what="The notes" lines={2}>
      {(Markdown) => <Markdown text={text} />}
    </Loaded>
  );
}

/**
 * `notes`: as they are stored now; those that the dialog was opened with may be older by the time it is saved. What was written and not
 * saved is there when the dialog is opened again.
 */
function EditNotes({ sweep, notes }: { sweep: string; notes: string }) {
  const [text, setText] = useState(notes);
  const [expected, setExpected] = useState(notes);
  const [preview, setPreview] = useState(false);
  const isDraft = text !== expected;
  const begin = (): void => {
    setText(notes);
    setExpected(notes);
  };
  const save = async (): Promise<Said> => {
    try {
      await act("AnnotateSweep", { sweep, notes: text, expected_notes: expected });
    } catch (failure) {
      if (!(failure instanceof ApiError) || failure.code !== "ABORTED") throw failure;
      setExpected(notes);
      throw new Error(
        "Somebody else has changed these notes meanwhile: the page behind this dialog shows them. Your text is still here; saving again replaces theirs.",
      );
    }
    setExpected(text);
    return {
      about: sweep,
      text: `Saved the notes of ${sweep}.`,
      undo: {
        label: "Undo",
        run: async () => {
          await act("AnnotateSweep", { sweep, notes: expected, expected_notes: text });
          return { text: `The notes of ${sweep} are as they were.`, about: sweep };
        },
      },
    };
  };
  return (
    <AskingButton
      quiet
      label={notes ? "Edit notes…" : "Add notes…"}
      title={`Notes on ${sweep}`}
      verb="Save"
      wide
      onOpen={() => {
        if (!isDraft) begin();
        setPreview(false);
      }}
      run={save}
    >
      {preview ? (
        <div class="notes-preview">
          <Rendered text={text} />
        </div>
      ) : (
        <label class="field">
          Markdown
          <textarea
            rows={14}
            maxLength={60_000}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
      )}
      <button type="button" class="quiet" aria-pressed={preview} onClick={() => setPreview(!preview)}>
        {preview ? "Back to the text" : "Preview"}
      </button>
      {isDraft && (
        <button type="button" class="quiet" onClick={begin}>
          Discard changes
        </button>
      )}
    </AskingButton>
  );
}
