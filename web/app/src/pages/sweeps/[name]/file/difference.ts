// SPDX-License-Identifier: Apache-2.0
// The only file that uses the library of differences. It belongs to the chunk of a file's revisions.
import { diffArrays } from "diff/lib/diff/array.js"; // of "diff" itself all of its ways would come along

/** A line of two texts side by side, by what became of it. */
export interface Line {
  sign: " " | "-" | "+";
  text: string;
  /** What ends it; only the last line of a text may have nothing there. */
  end: "\n" | "\r\n" | "";
  /** Its number in the earlier text, and in the later one, from 1. */
  before?: number;
  after?: number;
  /** Of a removed line the one in its place, and the other way round. */
  other?: Line;
}

export interface Difference {
  lines: Line[];
  added: number;
  removed: number;
  /** Lines that are the same but for what ends them. */
  ends: number;
  /** Some stretch differs in so many lines that it is not compared line by line. */
  coarse: boolean;
}

/** Lines of a stretch that may differ before it is taken as a whole: comparing takes their square. */
const kMostEdits = 1500;

/** What differs between two texts. */
export function difference(before: string, after: string): Difference {
  const [a, b] = [linesOf(before), linesOf(after)];
  const result: Difference = { lines: [], added: 0, removed: 0, ends: 0, coarse: false };
  let [i, j] = [0, 0];
  for (const [x, y] of [...anchors(a, b), [a.length, b.length] as const]) {
    addStretch(result, a, i, x, b, j, y);
    if (x < a.length) addLine(result, " ", a[x]!, x, y);
    [i, j] = [x + 1, y + 1];
  }
  pair(result);
  return result;
}

function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

/** Lines that both have once and in the same order: the places between them are compared on their own, which is quick. */
function anchors(a: string[], b: string[]): [number, number][] {
  const once = new Map<string, [number, number]>();
  const count = (lines: string[], side: 0 | 1): void =>
    lines.forEach((line, at) => {
      const places = once.get(line) ?? ([-1, -1] as [number, number]);
      places[side] = places[side] === -1 ? at : -2;
      once.set(line, places);
    });
  count(a, 0);
  count(b, 1);
  const both = [...once.values()].filter(([x, y]) => x >= 0 && y >= 0).sort((p, q) => p[0] - q[0]);
  // the longest sequence of them that ascends in both
  const ends: number[] = [];
  const previous: number[] = [];
  both.forEach(([, y], at) => {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (both[ends[middle]!]![1] < y) low = middle + 1;
      else high = middle;
    }
    previous[at] = low > 0 ? ends[low - 1]! : -1;
    ends[low] = at;
  });
  const longest: [number, number][] = [];
  for (let at = ends.at(-1) ?? -1; at >= 0; at = previous[at]!) longest.push(both[at]!);
  return longest.reverse();
}

function addStretch(
  to: Difference,
  a: string[],
  i: number,
  aEnd: number,
  b: string[],
  j: number,
  bEnd: number,
): void {
  if (i === aEnd && j === bEnd) return;
  const [old, now] = [a.slice(i, aEnd), b.slice(j, bEnd)];
  const found = old.length && now.length ? diffArrays(old, now, { maxEditLength: kMostEdits }) : undefined;
  if (!found) to.coarse ||= old.length > 0 && now.length > 0;
  const changes = found ?? [
    { value: old, removed: true, added: false },
    { value: now, removed: false, added: true },
  ];
  for (const { value, removed, added } of changes)
    for (const line of value)
      if (removed) addLine(to, "-", line, i++, j);
      else if (added) addLine(to, "+", line, i, j++);
      else addLine(to, " ", line, i++, j++);
}

function addLine(to: Difference, sign: Line["sign"], line: string, i: number, j: number): void {
  const end = line.endsWith("\r\n") ? "\r\n" : line.endsWith("\n") ? "\n" : "";
  const text = line.slice(0, line.length - end.length);
  if (sign === "+") ++to.added;
  if (sign === "-") ++to.removed;
  to.lines.push({
    sign,
    text,
    end,
    ...(sign !== "+" && { before: i + 1 }),
    ...(sign !== "-" && { after: j + 1 }),
  });
}

/** In each stretch that differs, the removed lines and those in their place; the removed ones come first. */
function pair(to: Difference): void {
  for (let at = 0; at < to.lines.length;) {
    let end = at;
    while (end < to.lines.length && to.lines[end]!.sign !== " ") ++end;
    const changed = to.lines.slice(at, end);
    const removed = changed.filter(({ sign }) => sign === "-");
    const added = changed.filter(({ sign }) => sign === "+");
    for (const line of removed.concat(added)) to.lines[at++] = line;
    for (let i = 0; i < Math.min(removed.length, added.length); ++i) {
      removed[i]!.other = added[i]!;
      added[i]!.other = removed[i]!;
      if (removed[i]!.text === added[i]!.text) ++to.ends;
    }
    at = end + 1;
  }
}

/** Lines that stand together. */
export interface Piece {
  lines: Line[];
  /** Unchanged, and away from what changed. */
  folded: boolean;
}

/** Unchanged lines around what changed. */
const kAround = 3;
/** Fewer are not worth a fold. */
const kFewest = 4;

export function piecesOf(lines: Line[]): Piece[] {
  const pieces: Piece[] = [];
  const add = (from: number, to: number, folded: boolean): void => {
    const last = pieces.at(-1);
    if (from >= to) return;
    if (last && !last.folded && !folded) last.lines = last.lines.concat(lines.slice(from, to));
    else pieces.push({ lines: lines.slice(from, to), folded });
  };
  for (let at = 0; at < lines.length;) {
    let end = at;
    while (end < lines.length && lines[end]!.sign !== " ") ++end;
    add(at, end, false);
    at = end;
    while (end < lines.length && lines[end]!.sign === " ") ++end;
    const first = at === 0 ? 0 : at + kAround;
    const last = end === lines.length ? end : end - kAround;
    const folds = last - first >= kFewest;
    add(at, folds ? first : end, false);
    if (folds) {
      add(first, last, true);
      add(last, end, false);
    }
    at = end;
  }
  return pieces;
}

/** A part of a line, and whether the other line lacks it. */
export interface Part {
  text: string;
  changed: boolean;
}

/** In longer lines words are not compared. */
const kLongest = 1000;
/** Of the longer line, that has to be the same: otherwise it is another line. */
const kAlike = 0.4;

/** Which words of a line changed; undefined: all of it, or none. */
export function partsOf(line: Line): Part[] | undefined {
  const other = line.other;
  if (!other || other.text === line.text) return undefined;
  if (line.text.length > kLongest || other.text.length > kLongest) return undefined;
  const words = (text: string): string[] => text.match(/[\p{L}\p{N}_]+|\s+|./gu) ?? [];
  const parts: Part[] = [];
  let same = 0;
  for (const { value, added, removed } of diffArrays(words(other.text), words(line.text))) {
    if (removed) continue;
    const text = value.join("");
    if (!added) same += text.trim().length;
    parts.push({ text, changed: added });
  }
  const longer = Math.max(line.text.trim().length, other.text.trim().length);
  return same >= kAlike * longer ? parts : undefined;
}

/** What is shown of a line that is very long: around the first place where it differs from the other. */
const kShown = 2000;

export interface Cut {
  text: string;
  /** Characters that are left out before and behind it. */
  before: number;
  behind: number;
}

export function cutOf(line: Line): Cut {
  const { text, other } = line;
  if (text.length <= kShown) return { text, before: 0, behind: 0 };
  let same = 0;
  if (other) while (same < text.length && text[same] === other.text[same]) ++same;
  const from = Math.max(0, Math.min(same - 100, text.length - kShown));
  return {
    text: text.slice(from, from + kShown),
    before: from,
    behind: Math.max(0, text.length - from - kShown),
  };
}
