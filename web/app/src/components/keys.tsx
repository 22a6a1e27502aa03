// SPDX-License-Identifier: Apache-2.0
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { keep, kept } from "../kept";
import { Link, navigate } from "../router";

/** Letters alone do something only where this is not set: who dictates, or steps on keys, switches them off. */
const kOff = "ablate:keys-off";

/** So long "g" waits for the letter of a page. */
const kPatienceMs = 1500;

function isWriting(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    target.matches("input:not([type=checkbox]), select, textarea, [contenteditable]")
  );
}

/** What is gone through: the rows of tables, and groups of failures. */
const kRows = "main tbody tr, main .failure-groups > li";

/** The first link of each row, which opens it; of a row without one its first button. */
function rows(): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>(kRows)].flatMap(
    (row) => row.querySelector<HTMLElement>("a") ?? row.querySelector<HTMLElement>("button") ?? [],
  );
}

function step(by: number): void {
  const all = rows();
  const here = all.findIndex((link) => link.closest(kRows)?.contains(document.activeElement));
  const next = here < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, here + by));
  all[next]?.focus();
}

/** Keys that lead about, the same on all pages, and the button that shows them. `pages`: the letter of each behind "g". */
export function Keys({ pages }: { pages: { key: string; path: string; title: string }[] }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [off, setOff] = useState(() => kept("localStorage", kOff) !== null);
  useLayoutEffect(() => {
    if (off) return;
    let went = -Infinity; // when "g" was pressed
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      if (event.key === "Escape" && isWriting(event.target)) return (event.target as HTMLElement).blur();
      if (isWriting(event.target) || dialog.current?.open) return;
      const page = event.timeStamp - went < kPatienceMs && pages.find(({ key }) => key === event.key);
      went = event.key === "g" ? event.timeStamp : -Infinity;
      const act = page
        ? () => navigate(page.path)
        : {
            "?": () => dialog.current?.showModal(),
            "/": () => document.querySelector<HTMLElement>("main input[type=search]")?.focus(),
            j: () => step(1),
            k: () => step(-1),
          }[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [off]);
  const choose = (isOff: boolean) => {
    keep("localStorage", kOff, isOff ? "" : null);
    setOff(isOff);
  };
  return (
    <>
      <button
        type="button"
        class="quiet"
        aria-label="Keyboard shortcuts"
        onClick={() => dialog.current?.showModal()}
      >
        ?
      </button>
      <dialog ref={dialog} class="keys panel" aria-labelledby="keys-title">
        <h2 id="keys-title">Keyboard shortcuts</h2>
        <dl>
          {pages.map(({ key, title }) => (
            <Key key={key} keys={["g", key]} does={title} />
          ))}
          <Key keys={["/"]} does="Find" />
          <Key keys={["j"]} does="Next row" />
          <Key keys={["k"]} does="Previous row" />
          <Key keys={["Enter"]} does="Open the row" />
          <Key keys={["Esc"]} does="Leave a field, close this" />
          <Key keys={["?"]} does="This list" />
        </dl>
        <form method="dialog">
          <label>
            <input
              type="checkbox"
              checked={!off}
              onChange={(event) => choose(!event.currentTarget.checked)}
            />
            Letters alone are shortcuts
          </label>
          <button>Close</button>
        </form>
        <p class="keys-more" onClick={() => dialog.current?.close()}>
          <Link href="/design">What these pages are made of</Link>
        </p>
      </dialog>
    </>
  );
}

function Key({ keys, does }: { keys: string[]; does: string }) {
  return (
    <div>
      <dt>
        {keys.map((key) => (
          <kbd key={key}>{key}</kbd>
        ))}
      </dt>
      <dd>{does}</dd>
    </div>
  );
}
