// SPDX-License-Identifier: Apache-2.0
import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

/** Up to this many lines are all drawn, each as high as it needs; of more only those in sight, all of one height. */
export const kMostDrawn = 100;
/** The height of a line then, as table.css has it. */
export const kLineHeight = 34;
/** The share of the browser's window that a box of lines takes at most, as components.css has it (`.tall`). */
const kTall = 0.86;
/** Lines drawn beyond what is in sight, so that scrolling and the keyboard meet no edge. */
const kBeyond = 8;

export interface Window {
  from: number;
  to: number;
}

/** Which of `count` lines are in sight of a box that scrolls, and some around them. The lines are the rows of its first <tbody>. */
export function useWindow(box: RefObject<HTMLElement | null>, count: number): Window {
  const whole = count <= kMostDrawn;
  const [window_, setWindow] = useState<Window>(() => windowAt(0, kTall * window.innerHeight, kMostDrawn));
  useLayoutEffect(() => {
    const element = box.current;
    if (whole || !element) return;
    const look = (): void => {
      const body = element.querySelector("tbody");
      if (!body) return;
      const hidden = element.getBoundingClientRect().top - body.getBoundingClientRect().top;
      const next = windowAt(hidden, element.clientHeight, count);
      setWindow((old) => (old.from === next.from && old.to === next.to ? old : next));
    };
    // it looks at once, between the layout of the page and its painting: here that would be one layout more
    const resized = new ResizeObserver(look);
    resized.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    return () => {
      resized.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, [whole, count]);
  // a link that has the focus may be drawn no more: the keys go on in the box
  const focused = box.current?.contains(document.activeElement) ? document.activeElement : null;
  useLayoutEffect(() => {
    if (focused && !focused.isConnected) box.current?.focus({ preventScroll: true });
  });
  if (whole) return { from: 0, to: count };
  return { from: Math.min(window_.from, count), to: Math.min(window_.to, count) };
}

/** By steps of half of what is drawn beyond: not each pixel draws anew. */
export function windowAt(hidden: number, height: number, count: number): Window {
  const step = kBeyond / 2;
  const first = Math.floor(Math.max(0, hidden) / kLineHeight / step) * step;
  const from = Math.max(0, Math.min(first - kBeyond, count - kBeyond));
  const shown = Math.ceil(height / kLineHeight / step) * step;
  const to = Math.min(count, first + step + shown + kBeyond);
  return { from, to: Math.max(to, from) };
}

/** Lines that are not drawn, as high as they would be. */
export function Gap({ lines }: { lines: number }) {
  if (lines <= 0) return null;
  return (
    <tr class="gap" aria-hidden="true">
      <td colSpan={100} style={{ height: `${lines * kLineHeight}px` }} />
    </tr>
  );
}
