// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren, RefObject, VNode } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Gap, kMostDrawn, useWindow } from "./window";

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

interface PanelProps {
  class?: string;
  /** Back returns to where it was scrolled to. */
  name?: string;
  box?: RefObject<HTMLDivElement | null> | undefined;
  children: ComponentChildren;
}

/** A panel that scrolls if its content is too large for it: only then is it a stop for the keyboard, named after its table. */
export function ScrollPanel(props: PanelProps) {
  const own = useRef<HTMLDivElement>(null);
  const box = props.box ?? own;
  useLayoutEffect(() => watch(box.current), []);
  return (
    <div class={`panel scroll ${props.class ?? ""}`} data-scroll={props.name} ref={box}>
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
  /** Of a table whose lines are not all drawn: the box that they scroll in, and how many there are with the head's. */
  box?: RefObject<HTMLDivElement | null> | undefined;
  rowCount?: number | undefined;
  /** The body's rows. */
  children: ComponentChildren;
}

/** A table in a panel of its own. */
export function TablePanel({ caption, titled, tall, head, subhead, children, ...props }: TableProps) {
  return (
    <ScrollPanel
      class={`${tall ? "tall" : ""} ${titled ? "titled-table" : ""}`}
      name={caption}
      box={props.box}
    >
      <table class={`wide ${props.class ?? ""}`} aria-rowcount={props.rowCount}>
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

interface LongProps extends Pick<TableProps, "caption" | "class" | "head"> {
  count: number;
  /**
   * The line at a place, and its place for screen readers where not all are drawn. As long as this is the same function, no line that
   * was drawn is drawn anew.
   */
  line: (place: number, index: number | undefined) => VNode;
}

/**
 * A table of lines that may be many: of more than kMostDrawn those in sight are drawn, each as high as one line of text. While a dialog of
 * one of them is open, none moves: the dialog would go with its line.
 */
export function LongTable(props: LongProps) {
  const box = useRef<HTMLDivElement>(null);
  const [, setClosed] = useState(0);
  useLayoutEffect(() => {
    const closed = (): void => setClosed((times) => times + 1);
    box.current!.addEventListener("close", closed, true);
    return () => box.current?.removeEventListener("close", closed, true);
  }, []);
  const shown = useRef(props);
  if (!box.current?.querySelector("dialog[open]")) shown.current = props;
  return <Lines {...shown.current} box={box} />;
}

function Lines({ count, line, box, ...props }: LongProps & { box: RefObject<HTMLDivElement | null> }) {
  const { from, to } = useWindow(box, count);
  const isLong = count > kMostDrawn;
  const drawn = useMemo(() => new Map<number, VNode>(), [line, isLong]);
  const lineAt = (place: number): VNode => {
    const known = drawn.get(place) ?? line(place, isLong ? place + 2 : undefined);
    drawn.set(place, known);
    return known;
  };
  for (const place of drawn.keys()) if (place < from || place >= to) drawn.delete(place);
  return (
    <TablePanel
      {...props}
      tall
      class={`${props.class ?? ""} ${isLong ? "dense" : ""}`}
      box={box}
      rowCount={isLong ? count + 1 : undefined}
    >
      <Gap lines={from} />
      {Array.from({ length: to - from }, (_, i) => lineAt(from + i))}
      <Gap lines={count - to} />
    </TablePanel>
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
