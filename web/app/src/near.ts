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

/**
 * The nearest address of a page, in which each word differs by a third at most. `pages`: folders of each, "[…]" stands for
 * any word.
 */
export function nearest(segments: string[], pages: string[][]): string | undefined {
  let best: { path: string; off: number } | undefined;
  for (const folders of pages) {
    if (folders.length > segments.length) continue; // a longer address leads to the page that it begins with
    let off = segments.length - folders.length;
    const isNear = folders.every((folder, i) => {
      if (folder.startsWith("[")) return true;
      const letters = distance(segments[i]!.toLowerCase().slice(0, 64), folder);
      off += letters / 100;
      return letters <= Math.max(1, folder.length / 3);
    });
    const path = `/${folders.map((folder, i) => (folder.startsWith("[") ? segments[i] : folder)).join("/")}`;
    if (isNear && (!best || off < best.off)) best = { path, off };
  }
  return best?.path;
}
