// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { messageOf } from "../api";
import { say, type Said } from "./said";

interface ActionProps {
  /** Text of the button: a verb, with "…" if it opens a dialog. */
  label: string;
  /** Name for screen readers, if the label does not say what it acts on: "Retry row a, seed 0". */
  name?: string;
  /** Acts; what it returns is shown as a notice. */
  run: () => Promise<Said | undefined>;
  quiet?: boolean;
}

interface PlainProps extends ActionProps {
  class?: string;
  title?: string;
  /** Of a button that switches something on and off: whether it is on. */
  pressed?: boolean;
}

/** A button that acts at once. An error is shown beside it. */
export function ActionButton({ label, name, run, quiet = false, pressed, title, ...props }: PlainProps) {
  const { busy, error, go } = useAction(run);
  return (
    <span class="action">
      <button
        type="button"
        class={`${quiet ? "quiet" : ""} ${props.class ?? ""}`}
        title={title}
        aria-label={name}
        aria-pressed={pressed}
        aria-busy={busy}
        onClick={() => !busy && void go()}
      >
        {label}
      </button>
      {error && (
        <span class="action-error" role="alert">
          {error}
        </span>
      )}
    </span>
  );
}

interface AskingProps extends ActionProps {
  /** The dialog's heading: a question, or what is set. */
  title: string;
  /** What will happen, what will be lost, or the fields to fill in. */
  children: ComponentChildren;
  /** Text of the dialog's button. */
  verb: string;
  /** It ends something: the button is red. */
  ends?: boolean;
  /** For more than a few fields. */
  wide?: boolean;
  /** Called when the dialog opens: its fields still have what was there when it was closed. */
  onOpen?: () => void;
}

/** A button that asks first, in a dialog. On an error the dialog stays open and shows it. */
export function AskingButton(props: AskingProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [open, setOpen] = useState(false);
  const heading = useId();
  const { busy, error, go, forget } = useAction(props.run);
  useEffect(() => {
    if (open) dialog.current?.showModal();
  }, [open]);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (!busy && (await go())) dialog.current?.close();
  };
  return (
    <span class="action">
      <button
        type="button"
        class={props.quiet ? "quiet" : ""}
        aria-label={props.name}
        aria-haspopup="dialog"
        onClick={() => {
          forget();
          props.onOpen?.();
          setOpen(true);
        }}
      >
        {props.label}
      </button>
      {open && (
        <dialog
          ref={dialog}
          class={`asking panel ${props.wide ? "asking-wide" : ""}`}
          aria-labelledby={heading}
          onClose={() => setOpen(false)}
        >
          <form method="dialog" onSubmit={(event) => void submit(event)}>
            <h2 id={heading}>{props.title}</h2>
            {props.children}
            {error && (
              <p class="action-error" role="alert">
                {error}
              </p>
            )}
            <div class="asking-buttons">
              <button type="button" onClick={() => dialog.current?.close()}>
                Close
              </button>
              <button type="submit" class={props.ends ? "ends" : "does"} aria-busy={busy}>
                {props.verb}
              </button>
            </div>
          </form>
        </dialog>
      )}
    </span>
  );
}

function useAction(run: () => Promise<Said | undefined>) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const go = async (): Promise<boolean> => {
    setBusy(true);
    setError("");
    try {
      const said = await run();
      if (said) say(said);
      return true;
    } catch (failure) {
      setError(messageOf(failure));
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { busy, error, go, forget: () => setError("") };
}
