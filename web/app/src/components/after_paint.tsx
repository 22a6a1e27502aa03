// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

/**
 * What a page has below what it is read for: it is drawn once that has been painted, and so costs it nothing. A part that the address
 * names, or where Back returns to, is waited for (scroll.ts).
 */
export function AfterPaint({ children }: { children: ComponentChildren }) {
  const [isPainted, setPainted] = useState(false);
  useEffect(() => {
    let isOver = false;
    const frame = requestAnimationFrame(() => {
      // a message comes when the frame has been painted
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => isOver || setPainted(true);
      port2.postMessage(null);
    });
    return () => {
      isOver = true;
      cancelAnimationFrame(frame);
    };
  }, []);
  return isPainted ? <>{children}</> : <span class="skeleton unseen" />;
}
