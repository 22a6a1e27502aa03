// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import { messageOf } from "../api";
import { Link } from "../router";

/** What was done, as a sentence, a link to what came of it, and a button that undoes it, if one can. */
export interface Said {
  text: string;
  link?: { label: string; href: string };
  undo?: { label: string; run: () => Promise<Said> };
  /** What it is of, a sweep for one: it takes the place of what was said of that before. */
  about?: string;
}
interface Shown extends Said {
  id: number;
  failed: boolean;
}

/** How long a notice stays unless it is pointed at; longer if it has a button. */
const kStaysMs = 12_000;
const kStaysWithButtonMs = 40_000;
const kMost = 3;

let next = 0;
let shown: Shown[] = [];
const listeners = new Set<(shown: Shown[]) => void>();
function show(now: Shown[]): void {
  shown = now;
  listeners.forEach((listener) => listener(now));
}

/** Shows a notice in the corner of the page; screen readers read it. */
export function say(said: Said, failed = false): void {
  const others = shown.filter(({ about }) => !about || about !== said.about);
  show([...others, { ...said, id: ++next, failed }].slice(-kMost));
}
const forget = (id: number): void => show(shown.filter((one) => one.id !== id));

/** The corner of a page that has its notices. */
export function SaidCorner() {
  const [all, setAll] = useState(shown);
  useEffect(() => {
    listeners.add(setAll);
    return () => void listeners.delete(setAll);
  }, []);
  return (
    <div class="said-corner" role="status" aria-live="polite">
      {all.map((one) => (
        <SaidNotice key={one.id} said={one} />
      ))}
    </div>
  );
}

function SaidNotice({ said }: { said: Shown }) {
  const [held, setHeld] = useState(false);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    if (held || busy || said.failed) return;
    const timer = window.setTimeout(
      () => forget(said.id),
      said.undo || said.link ? kStaysWithButtonMs : kStaysMs,
    );
    return () => window.clearTimeout(timer);
  }, [held, busy]);
  const undo = async (): Promise<void> => {
    setBusy(true);
    try {
      const undone = await said.undo!.run();
      forget(said.id);
      say(undone);
    } catch (error) {
      forget(said.id);
      say({ text: messageOf(error) }, true);
    }
  };
  return (
    <div
      class={`said panel${said.failed ? " said-failed" : ""}`}
      onPointerEnter={() => setHeld(true)}
      onPointerLeave={() => setHeld(false)}
      onFocusIn={() => setHeld(true)}
      onFocusOut={() => setHeld(false)}
    >
      <span class="said-text">{said.text}</span>
      {said.link && <Link href={said.link.href}>{said.link.label}</Link>}
      {said.undo && (
        <button type="button" disabled={busy} onClick={() => void undo()}>
          {said.undo.label}
        </button>
      )}
      <button type="button" class="quiet" aria-label="Close this notice" onClick={() => forget(said.id)}>
        ×
      </button>
    </div>
  );
}
