// SPDX-License-Identifier: Apache-2.0
// As much of YAML as an editor of sweep files needs to colour them and to indent: a line at a time, whatever is wrong in it.

/** What a line leaves open for the next one. */
export interface Open {
  /** The quote that is not closed yet. */
  quote: "" | '"' | "'";
  /** Brackets that are not closed yet. */
  brackets: number;
  /** In a text behind "|" or ">": its lines are indented by more than this; -1: in none. */
  block: number;
}
export const kNothingOpen: Open = { quote: "", brackets: 0, block: -1 };

export interface Token {
  from: number;
  to: number;
  kind: "comment" | "key" | "string" | "mark" | "word";
}

const kQuoted = { '"': /(?:[^"\\]|\\.)*/y, "'": /(?:[^']|'')*/y };
const kIndent = /^ */;
/** A plain text ends before ": ", " #" and, within brackets, before one of these. */
const kPlain = /(?:[^\s:#]|:(?=\S)|#|[^\S\n]+(?![\s#]|$))+/y;
const kPlainInBrackets = /(?:[^\s:#,[\]{}]|:(?=[^\s,[\]{}])|#|[^\S\n]+(?![\s#,[\]{}]|$))+/y;
const kNamed = /[&*!][^\s,[\]{}]*/y;
const kBlock = /[|>][-+\d]*(?=\s*(?:#.*)?$)/y;

/** The parts of a line that have a colour, in order. */
export function tokensOf(line: string, before: Open): { tokens: Token[]; open: Open } {
  const open = { ...before };
  const tokens: Token[] = [];
  const indent = kIndent.exec(line)![0].length;
  if (open.block >= 0) {
    if (indent > open.block || line.trim() === "") return { tokens, open };
    open.block = -1;
  }
  let at = 0;
  let parent = indent; // where the key or dash begins that a block text belongs to
  const add = (to: number, kind: Token["kind"]): void => {
    tokens.push({ from: at, to, kind });
    at = to;
  };
  const match = (pattern: RegExp, from = at): number => {
    pattern.lastIndex = from;
    return pattern.test(line) ? pattern.lastIndex : from;
  };
  const isKey = (to: number): boolean => /^\s*:(?:\s|$)/.test(line.slice(to));
  const quoted = (from: number): void => {
    const end = match(kQuoted[open.quote as '"' | "'"], from);
    const closed = line[end] === open.quote;
    if (closed) open.quote = "";
    const to = closed ? end + 1 : line.length;
    if (closed && isKey(to)) parent = at;
    add(to, closed && isKey(to) ? "key" : "string");
  };
  if (open.quote) quoted(0);
  else if (!open.brackets && /^(?:%|(?:---|\.\.\.)(?:\s|$))/.test(line))
    add(line[0] === "%" ? line.length : 3, "word");
  while (at < line.length) {
    const letter = line[at]!;
    const alone = at + 1 === line.length || /\s/.test(line[at + 1]!);
    if (/\s/.test(letter)) ++at;
    else if (letter === "#" && (at === 0 || /\s/.test(line[at - 1]!))) add(line.length, "comment");
    else if (letter === '"' || letter === "'") {
      open.quote = letter;
      quoted(at + 1);
    } else if (/[[\]{},]/.test(letter) && (open.brackets > 0 || letter === "[" || letter === "{")) {
      if (letter === "[" || letter === "{") ++open.brackets;
      if (letter === "]" || letter === "}") --open.brackets;
      add(at + 1, "mark");
    } else if ((letter === ":" || letter === "-" || letter === "?") && alone) {
      if (letter === "-") parent = at;
      add(at + 1, "mark");
    } else if (/[&*!]/.test(letter)) add(match(kNamed), "word");
    else if (!open.brackets && /[|>]/.test(letter) && match(kBlock) > at) {
      open.block = parent;
      add(match(kBlock), "mark");
    } else {
      const end = Math.max(at + 1, match(open.brackets ? kPlainInBrackets : kPlain));
      if (isKey(end)) {
        parent = at;
        add(end, "key");
      } else at = end;
    }
  }
  return { tokens, open };
}

/** By how much the line behind this one is indented, which begins with what was behind the cursor; undefined: as this one. */
export function indentBehind(line: string, unit: number): number | undefined {
  if (line.trim() === "") return undefined;
  const indent = kIndent.exec(line)![0].length;
  const dashes = /^ *(?:- +)*/.exec(line)![0].length;
  const { tokens, open } = tokensOf(line, kNothingOpen);
  const last = tokens.filter(({ kind }) => kind !== "comment").at(-1);
  const ends =
    last && line.slice(last.to).replace(/#.*/, "").trim() === "" ? line.slice(last.from, last.to) : "";
  const item = tokens.some(({ kind, from }) => kind === "key" && from === dashes);
  const column = item ? dashes : Math.max(indent, line.slice(0, dashes).lastIndexOf("-"));
  return open.brackets > 0 || open.block >= 0 || ends === ":" ? column + unit : column;
}
