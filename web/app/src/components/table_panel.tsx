// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";

/** Tells panels and what is in them when their size changes. */
const sizes = new ResizeObserver((entries) => {
  const panels = new Set(entries.map(({ target }) => target.closest<HTMLElement>(".scroll")));
  for (const panel of panels) if (panel) adapt(panel);
});

function adapt(panel: HTMLElement): void {
  const scrolls = panel.scrollWidth > panel.clientWidth + 1 || panel.scrollHeight > panel.clientHeight + 1;
  if (!scrolls) {
    for (const name of ["tabindex", "role", "aria-label"]) panel.removeAttribute(name);
    return;
  }
  panel.tabIndex = 0;
  panel.setAttribute("role", "group");
  panel.setAttribute("aria-label", panel.querySelector("caption")?.textContent ?? "Table");
}

function watch(panel: HTMLElement | null): void {
  if (!panel) return;
  sizes.observe(panel);
  if (panel.firstElementChild) sizes.observe(panel.firstElementChild);
}

/**
 * A panel that scrolls if its content is too large for it: only then is it a stop for the keyboard, named after its table. `name`: Back
 * returns to where it was scrolled to.
 */
export function ScrollPanel(props: { class?: string; name?: string; children: ComponentChildren }) {
  return (
    <div class={`panel scroll ${props.class ?? ""}`} data-scroll={props.name} ref={watch}>
      {props.children}
    </div>
  );
}

interface TableProps {
  /** What the table lists: read by screen readers, and shown above the head if `titled`. */
  caption: string;
  titled?: boolean;
  /** A long table scrolls in its own box, under its head and beside its first column. */
  tall?: boolean;
  /** Class of the table. */
  class?: string;
  /** Cells of the head's line, and of a second one below it. */
  head?: ComponentChildren;
  subhead?: ComponentChildren;
  /** The body's rows. */
  children: ComponentChildren;
}

/** A table in a panel of its own. */
export function TablePanel({ caption, titled, tall, head, subhead, children, ...props }: TableProps) {
  return (
    <ScrollPanel class={`${tall ? "tall" : ""} ${titled ? "titled-table" : ""}`} name={caption}>
      <table class={`wide ${props.class ?? ""}`}>
        {titled ? (
          <caption>
            <strong>{caption}</strong>
          </caption>
        ) : (
          <caption class="sr-only">{caption}</caption>
        )}
        {head && (
          <thead>
            <tr>{head}</tr>
            {subhead && <tr>{subhead}</tr>}
          </thead>
        )}
        <tbody>{children}</tbody>
      </table>
    </ScrollPanel>
  );
}

/** The head of a column. `num`: of numbers, which are aligned right. */
export function ColumnHead({
  num,
  children,
  ...props
}: {
  num?: boolean;
  title?: string;
  children: ComponentChildren;
}) {
  return (
    <th scope="col" class={num ? "num" : undefined} {...props}>
      {children}
    </th>
  );
}
