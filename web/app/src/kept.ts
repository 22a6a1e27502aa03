// SPDX-License-Identifier: Apache-2.0

type Where = "localStorage" | "sessionStorage";

/** What the browser keeps under a name; null: nothing, or it lets no page keep anything. */
export function kept(where: Where, name: string): string | null {
  try {
    return window[where].getItem(name);
  } catch {
    return null;
  }
}

/** Keeps a text under a name, or nothing any more (null). Where the browser refuses, or is full, what is kept is lost with the page. */
export function keep(where: Where, name: string, text: string | null): void {
  try {
    if (text === null) window[where].removeItem(name);
    else window[where].setItem(name, text);
  } catch {
    // as said above
  }
}
