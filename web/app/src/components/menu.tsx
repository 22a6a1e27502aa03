// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

/**
 * A button with a panel below it, which closes by Escape and by whatever is done elsewhere. What is in the panel is made while it is
 * open: a table of thousands of rows has menus too.
 */
export function Menu({ title, children }: { title: ComponentChildren; children: () => ComponentChildren }) {
  const menu = useRef<HTMLDetailsElement>(null);
  const [isOpen, setOpen] = useState(false);
  useLayoutEffect(() => {
    const element = menu.current!;
    const leave = (event: Event): void => {
      if (event.target instanceof Node && !element.contains(event.target)) element.open = false;
    };
    const escape = (event: KeyboardEvent): void => {
      if (event.key !== "Escape" || !element.open) return;
      element.open = false;
      element.querySelector("summary")?.focus();
    };
    document.addEventListener("pointerdown", leave);
    document.addEventListener("focusin", leave);
    element.addEventListener("keydown", escape);
    return () => {
      document.removeEventListener("pointerdown", leave);
      document.removeEventListener("focusin", leave);
    };
  }, []);
  return (
    <details class="menu" ref={menu} onToggle={() => setOpen(menu.current!.open)}>
      <summary class="button">{title}</summary>
      <div class="menu-panel panel">{isOpen && children()}</div>
    </details>
  );
}
