// SPDX-License-Identifier: Apache-2.0
// Markdown as people write it in notes: headings, paragraphs, lists (also of tasks), quotes, fenced code, tables, rules; emphasis, code,
// links, pictures, addresses. The kept parsers take 16 kB of what the app may have; this is a tenth of that. Nothing is HTML here: a tag
// is text. What is long or deep without end takes no longer: every look ahead is bounded.

export type Inline =
  | { kind: "text" | "code"; text: string }
  | { kind: "strong" | "em" | "del"; children: Inline[] }
  | { kind: "link"; href: string; children: Inline[] }
  | { kind: "break" };

export type Align = "left" | "right";

export interface Item {
  /** Of a task, whether it is done. */
  done?: boolean;
  children: Block[];
}

export type Block =
  | { kind: "heading"; level: number; children: Inline[] }
  | { kind: "paragraph" | "line"; children: Inline[] } // a line: the text of a tight list's item
  | { kind: "code"; text: string }
  | { kind: "quote"; children: Block[] }
  | { kind: "list"; start: number | undefined; items: Item[] } // `start`: of a numbered one
  | { kind: "table"; align: Align[]; head: Inline[][]; rows: Inline[][][] }
  | { kind: "rule" };

/** Deeper than this, marks are text. */
const kDeepest = 8;

const kHeading = /^ {0,3}(#{1,6})( .*)?$/;
const kFence = /^ {0,3}(`{3,}|~{3,})[^`]*$/;
const kRule = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const kQuote = /^ {0,3}> ?/;
const kItem = /^( {0,3}(?:[-*+]|(\d{1,9})[.)]))([ \t]+|$)/;
const kTableRule = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
const isBlank = (line: string): boolean => line.trim() === "";

export function parse(text: string): Block[] {
  return blocksOf(text.replace(/\r\n?/g, "\n").replace(/\t/g, "    ").split("\n"), 0);
}

function blocksOf(lines: string[], depth: number): Block[] {
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length;) {
    const [block, next] = blockAt(lines, at, depth);
    if (block) blocks.push(block);
    at = next;
  }
  return blocks;
}

/** Whether a paragraph ends before this line. */
function begins(lines: string[], at: number, depth: number): boolean {
  const line = lines[at]!;
  return (
    isBlank(line) ||
    kHeading.test(line) ||
    kFence.test(line) ||
    kRule.test(line) ||
    (depth < kDeepest && (kQuote.test(line) || kItem.test(line))) ||
    isTable(lines, at)
  );
}

const isTable = (lines: string[], at: number): boolean =>
  lines[at]!.includes("|") && kTableRule.test(lines[at + 1] ?? "") && (lines[at + 1] ?? "").includes("-");

/** The block that begins at a line, and the line behind it. */
function blockAt(lines: string[], at: number, depth: number): [Block | undefined, number] {
  const line = lines[at]!;
  if (isBlank(line)) return [undefined, at + 1];
  const heading = kHeading.exec(line);
  if (heading)
    return [
      { kind: "heading", level: heading[1]!.length, children: inlinesOf(unclosed(heading[2] ?? "")) },
      at + 1,
    ];
  const fence = kFence.exec(line);
  if (fence) return codeAt(lines, at, fence[1]!);
  if (kRule.test(line)) return [{ kind: "rule" }, at + 1];
  if (depth < kDeepest && kQuote.test(line)) {
    let end = at;
    while (end < lines.length && kQuote.test(lines[end]!)) ++end;
    const within = lines.slice(at, end).map((quoted) => quoted.replace(kQuote, ""));
    return [{ kind: "quote", children: blocksOf(within, depth + 1) }, end];
  }
  if (depth < kDeepest && kItem.test(line)) return listAt(lines, at, depth);
  if (isTable(lines, at)) return tableAt(lines, at);
  let end = at + 1;
  while (end < lines.length && !begins(lines, end, depth)) ++end;
  return [{ kind: "paragraph", children: inlinesOf(lines.slice(at, end).join("\n")) }, end];
}

/** The text of a heading without the signs that may close it. */
function unclosed(text: string): string {
  const words = text.trim();
  let end = words.length;
  while (end > 0 && words[end - 1] === "#") --end;
  return end === 0 || words[end - 1] === " " ? words.slice(0, end).trim() : words;
}

function codeAt(lines: string[], at: number, fence: string): [Block, number] {
  const isEnd = (line: string): boolean => {
    const mark = line.trim();
    return mark.length >= fence.length && mark === fence[0]!.repeat(mark.length);
  };
  let end = at + 1;
  while (end < lines.length && !isEnd(lines[end]!)) ++end;
  return [{ kind: "code", text: lines.slice(at + 1, end).join("\n") }, end + 1];
}

const indentOf = (line: string): number => line.length - line.trimStart().length;

/** Items of one kind, numbered or not. A line that is indented belongs to the item before it. */
function listAt(lines: string[], at: number, depth: number): [Block, number] {
  const first = kItem.exec(lines[at]!)!;
  const isNumbered = first[2] !== undefined;
  const found: string[][] = [];
  let loose = false;
  let offset = 0;
  let end = at;
  for (; end < lines.length; ++end) {
    const line = lines[end]!;
    if (isBlank(line)) {
      const next = lines.slice(end + 1, end + 100).find((later) => !isBlank(later));
      const goesOn = next !== undefined && (indentOf(next) >= offset || isItem(next, isNumbered));
      if (!goesOn) break;
      loose = true;
      found.at(-1)!.push("");
    } else if (found.length > 0 && indentOf(line) >= offset) {
      found.at(-1)!.push(line.slice(offset));
    } else if (isItem(line, isNumbered)) {
      const mark = kItem.exec(line)![0];
      offset = mark.trim() === mark.trimStart() ? mark.length + 1 : mark.trimEnd().length + 1;
      found.push([line.slice(mark.length)]);
    } else if (found.at(-1)!.at(-1) !== "" && !begins(lines, end, depth)) {
      found.at(-1)!.push(line.trimStart());
    } else {
      break;
    }
  }
  const items = found.map((of) => itemOf(of, loose, depth));
  return [{ kind: "list", start: isNumbered ? Number(first[2]) : undefined, items }, end];
}

function isItem(line: string, numbered: boolean): boolean {
  const item = kItem.exec(line);
  return item !== null && (item[2] !== undefined) === numbered && !kRule.test(line);
}

function itemOf(lines: string[], loose: boolean, depth: number): Item {
  const task = /^\[([ xX])\] /.exec(lines[0]!);
  if (task) lines[0] = lines[0]!.slice(4);
  const children = blocksOf(lines, depth + 1).map((block) =>
    block.kind === "paragraph" && !loose ? { ...block, kind: "line" as const } : block,
  );
  return { ...(task ? { done: task[1] !== " " } : {}), children };
}

function tableAt(lines: string[], at: number): [Block, number] {
  const cells = (line: string): string[] =>
    line
      .trim()
      .replace(/^\||(?<!\\)\|$/g, "")
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim().replaceAll("\\|", "|"));
  const head = cells(lines[at]!);
  const align = cells(lines[at + 1]!).map((rule): Align => (/[^:]:$/.test(rule) ? "right" : "left"));
  const rows: Inline[][][] = [];
  let end = at + 2;
  for (; end < lines.length && !isBlank(lines[end]!) && lines[end]!.includes("|"); ++end)
    rows.push(head.map((_, i) => inlinesOf(cells(lines[end]!)[i] ?? "")));
  return [{ kind: "table", align, head: head.map((cell) => inlinesOf(cell)), rows }, end];
}

/** What can begin with a character, each tried at its place alone. Lengths are bounded, so that none is slow. */
const kEscape = /\\([!-/:-@[-`{-~])/y;
const kBreak = /(?: {2,20}|\\)\n/y;
const kTicks = /`+/y;
const kCode = /(`+)(?!`)([^]{0,2000}?[^`])\1(?!`)/y;
const kLink =
  /!?\[((?:[^[\]\\]|\\.){0,500})\]\(<?([^\s()<>]{0,2000}(?:\([^\s()<>]{0,500}\)[^\s()<>]{0,500})?)>?(?:\s{1,20}"[^"]{0,500}")?\)/y;
const kBrackets = /<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/y;
const kAddress = /https?:\/\/[^\s<>"']{1,2000}/y;
const kStrong = /(\*\*|__)(?=\S)([^]{0,1000}?\S)\1/y;
const kEm = /\*(?=[^\s*])([^*]{0,1000}?[^\s*])\*(?!\*)|_(?=[^\s_])([^_]{0,1000}?[^\s_])_(?![\w])/y;
const kDel = /~~(?=\S)([^]{0,1000}?\S)~~/y;

export function inlinesOf(text: string, depth = 0): Inline[] {
  const found: Inline[] = [];
  let plain = "";
  const add = (inline: Inline): void => {
    if (plain) found.push({ kind: "text", text: plain });
    plain = "";
    found.push(inline);
  };
  for (let at = 0; at < text.length;) {
    const match = (pattern: RegExp): RegExpExecArray | null => {
      pattern.lastIndex = at;
      return pattern.exec(text);
    };
    const before = at > 0 ? text[at - 1]! : " ";
    const [inline, length] = inlineAt(text[at]!, before, match, depth);
    if (length === 0) plain += text[at++]!.replace("\n", " ");
    else if (typeof inline === "string") ((plain += inline), (at += length));
    else (add(inline), (at += length));
  }
  if (plain) found.push({ kind: "text", text: plain });
  return found;
}

/** What begins here and how long it is; nothing where its length is 0. */
function inlineAt(
  letter: string,
  before: string,
  match: (pattern: RegExp) => RegExpExecArray | null,
  depth: number,
): [Inline | string, number] {
  const none: [string, number] = ["", 0];
  const isDeep = depth >= kDeepest;
  const within = (text: string): Inline[] => inlinesOf(text, depth + 1);
  let is: RegExpExecArray | null = null;
  switch (letter) {
    case "\\":
      if ((is = match(kBreak))) return [{ kind: "break" }, is[0].length];
      return (is = match(kEscape)) ? [is[1]!, is[0].length] : none;
    case " ":
      return (is = match(kBreak)) ? [{ kind: "break" }, is[0].length] : none;
    case "`":
      if ((is = match(kCode))) {
        const code = is[2]!.replaceAll("\n", " ");
        return [{ kind: "code", text: /^ .*[^ ].* $/.test(code) ? code.slice(1, -1) : code }, is[0].length];
      }
      is = match(kTicks)!; // that close nothing
      return [is[0], is[0].length];
    case "!":
    case "[":
      if (isDeep || !(is = match(kLink))) return none;
      return [{ kind: "link", href: is[2]!, children: within(is[1]! || is[2]!) }, is[0].length];
    case "<":
      if (!(is = match(kBrackets))) return none;
      return [{ kind: "link", href: is[1]!, children: [{ kind: "text", text: is[1]! }] }, is[0].length];
    case "h": {
      if (/\w/.test(before) || !(is = match(kAddress))) return none;
      const address = is[0].replace(/[.,:;!?*_~`)\]]+$/, ""); // a full stop ends the sentence
      return [{ kind: "link", href: address, children: [{ kind: "text", text: address }] }, address.length];
    }
    case "*":
    case "_":
      if (isDeep || (letter === "_" && /\w/.test(before))) return none;
      if ((is = match(kStrong))) return [{ kind: "strong", children: within(is[2]!) }, is[0].length];
      if ((is = match(kEm))) return [{ kind: "em", children: within(is[1] ?? is[2]!) }, is[0].length];
      return none;
    case "~":
      if (isDeep || !(is = match(kDel))) return none;
      return [{ kind: "del", children: within(is[1]!) }, is[0].length];
    default:
      return none;
  }
}
