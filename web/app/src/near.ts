// SPDX-License-Identifier: Apache-2.0

/** How many letters are to be changed, added or left out to make one word the other. */
export function distance(one: string, other: string): number {
  let line = Array.from({ length: other.length + 1 }, (_, i) => i);
  for (let i = 1; i <= one.length; ++i) {
    const next = [i];
    for (let j = 1; j <= other.length; ++j)
      next.push(Math.min(next[j - 1]! + 1, line[j]! + 1, line[j - 1]! + Number(one[i - 1] !== other[j - 1])));
    line = next;
  }
  return line[other.length]!;
}

/** A page's folders, of which "[…]" stands for any word, or for those that it accepts. */
export interface Address {
  folders: string[];
  accepts?: ((word: string) => boolean) | undefined;
}

/** The nearest address of a page, in which each word differs by a third at most. */
export function nearest(segments: string[], pages: Address[]): string | undefined {
  let best: { path: string; off: number } | undefined;
  for (const { folders, accepts } of pages) {
    if (folders.length > segments.length) continue; // a longer address leads to the page that it begins with
    let off = segments.length - folders.length;
    const isNear = folders.every((folder, i) => {
      if (folder.startsWith("[")) return accepts?.(segments[i]!) ?? true;
      const letters = distance(segments[i]!.toLowerCase().slice(0, 64), folder);
      off += letters / 100;
      return letters <= Math.max(1, folder.length / 3);
    });
    const path = `/${folders.map((folder, i) => (folder.startsWith("[") ? segments[i] : folder)).join("/")}`;
    if (isNear && (!best || off < best.off)) best = { path, off };
  }
  return best?.path;
}
