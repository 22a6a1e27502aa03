// SPDX-License-Identifier: Apache-2.0
import { useEffect } from "preact/hooks";

/** Names the tab after what it shows. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · ablate`;
  }, [title]);
}
