// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import { isSafe } from "./address";
import { inlinesOf, parse, type Block, type Inline } from "./parse";

/** A short form: <p>text <strong>…</strong></p>, with nothing escaped. */
const shortInline = (inline: Inline): string => {
  if (inline.kind === "break") return "<br>";
  if (!("children" in inline)) return inline.kind === "text" ? inline.text : `<code>${inline.text}</code>`;
  const tag = inline.kind === "link" ? `a ${inline.href}` : inline.kind;
  return `<${tag}>${inline.children.map(shortInline).join("")}</${tag.split(" ")[0]}>`;
};
const words = (of: Inline[]): string => of.map(shortInline).join("");
const short = (block: Block): string => {
  switch (block.kind) {
    case "heading":
      return `<h${block.level}>${words(block.children)}</h${block.level}>`;
    case "paragraph":
      return `<p>${words(block.children)}</p>`;
    case "line":
      return words(block.children);
    case "code":
      return `<pre>${block.text}</pre>`;
    case "quote":
      return `<quote>${block.children.map(short).join("")}</quote>`;
    case "rule":
      return "<hr>";
    case "list": {
      const tag = block.start === undefined ? "ul" : `ol ${block.start}`;
      const items = block.items.map(({ done, children }) => {
        const box = done === undefined ? "" : done ? "[x]" : "[ ]";
        return `<li>${box}${children.map(short).join("")}</li>`;
      });
      return `<${tag}>${items.join("")}</${tag.split(" ")[0]}>`;
    }
    case "table":
      return `<table ${block.align.join(" ")}>${[block.head, ...block.rows].map((row) => row.map(words).join("|")).join("/")}</table>`;
  }
};
const shown = (text: string): string => parse(text).map(short).join("");
const inline = (text: string): string => words(inlinesOf(text));

describe("blocks", () => {
  test.each([
    ["# One\n### Three ###\n#no", "<h1>One</h1><h3>Three</h3><p>#no</p>"],
    ["# C#\n## ##\n#", "<h1>C#</h1><h2></h2><h1></h1>"],
    ["a\nb\n\nc", "<p>a b</p><p>c</p>"],
    ["a  \nb\\\nc", "<p>a<br>b<br>c</p>"],
    ["```python\nx = *1*\n\n# no\n```\nafter", "<pre>x = *1*\n\n# no</pre><p>after</p>"],
    ["```\nnever closed", "<pre>never closed</pre>"],
    ["~~~~\n```\n~~~~", "<pre>```</pre>"],
    ["---\n***\n_ _ _", "<hr><hr><hr>"],
    ["> a\n> > b\n\nc", "<quote><p>a</p><quote><p>b</p></quote></quote><p>c</p>"],
    ["- a\n- b\n  - c\n  - d\n- e", "<ul><li>a</li><li>b<ul><li>c</li><li>d</li></ul></li><li>e</li></ul>"],
    ["1. a\n2. b\n\n   more", "<ol 1><li><p>a</p></li><li><p>b</p><p>more</p></li></ol>"],
    ["3) a\n- b", "<ol 3><li>a</li></ol><ul><li>b</li></ul>"],
    ["- [x] done\n- [ ] open\n- [y] text", "<ul><li>[x]done</li><li>[ ]open</li><li>[y] text</li></ul>"],
    ["- a\n  ```\n  code\n  ```\n\ntext", "<ul><li>a<pre>code</pre></li></ul><p>text</p>"],
    ["text\n- a\nlazy\n\nnext", "<p>text</p><ul><li>a lazy</li></ul><p>next</p>"],
    [
      "| a | b |\n|---|--:|\n| 1 | `x` |\n| 2 \\| 3 |",
      "<table left right>a|b/1|<code>x</code>/2 | 3|</table>",
    ],
    ["a | b\n- | -\n1 | 2\n\nc", "<table left left>a|b/1|2</table><p>c</p>"],
    ["not | a table", "<p>not | a table</p>"],
    ["- ", "<ul><li></li></ul>"],
    ["a\r\nb\rc", "<p>a b c</p>"],
    ["", ""],
    ["<script>alert(1)</script>\n<b>x</b>", "<p><script>alert(1)</script> <b>x</b></p>"],
  ])("%j", (text, expected) => expect(shown(text)).toBe(expected));
});

describe("words", () => {
  test.each([
    [
      "a **b** *c* __d__ _e_ ~~f~~",
      "a <strong>b</strong> <em>c</em> <strong>d</strong> <em>e</em> <del>f</del>",
    ],
    ["**a *b* c**", "<strong>a <em>b</em> c</strong>"],
    ["2 * 3 * 4, snake_case_name, val/top1_ema_", "2 * 3 * 4, snake_case_name, val/top1_ema_"],
    ["** not **", "** not **"],
    ["`a*b*` ``x`y`` `open", "<code>a*b*</code> <code>x`y</code> `open"],
    ["\\*a\\* \\`b\\` \\q", "*a* `b` \\q"],
    [
      "[a *b*](/x) ![p](https://h/i.png) [no] (x)",
      "<a /x>a <em>b</em></a> <a https://h/i.png>p</a> [no] (x)",
    ],
    ['[w](https://en.wikipedia.org/wiki/A_(b) "t")', "<a https://en.wikipedia.org/wiki/A_(b)>w</a>"],
    [
      "see https://x.y/z_1?a=b. And (https://x.y).",
      "see <a https://x.y/z_1?a=b>https://x.y/z_1?a=b</a>. And (<a https://x.y>https://x.y</a>).",
    ],
    [
      "<https://x.y> <mailto:a@b.c> <b>",
      "<a https://x.y>https://x.y</a> <a mailto:a@b.c>mailto:a@b.c</a> <b>",
    ],
    ["75 % ± 0.3, p < 0.05 & more", "75 % ± 0.3, p < 0.05 & more"],
  ])("%j", (text, expected) => expect(inline(text)).toBe(expected));
});

test("no link runs anything", () => {
  for (const href of [
    "javascript:alert(1)",
    "JaVaScript:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "\u0001javascript:x",
    "file:///etc/passwd",
  ])
    expect(isSafe(href), href).toBe(false);
  for (const href of ["https://x.y", "/sweeps/a", "?row=b", "#top", "mailto:a@b.c", "//x.y/z"])
    expect(isSafe(href), href).toBe(true);
});

test("no text is too deep, and none loses its end", () => {
  const pieces = [
    "> ",
    "- ",
    "[",
    "![](",
    "**a ",
    "*a _",
    "`a",
    "``a`",
    "~~a",
    "<",
    "https://",
    "| a\n|-\n",
    "1. ",
    "\\",
    "  - a\n",
    " ",
    "# ",
    "x #",
    "-",
    "| -",
  ];
  for (const piece of pieces)
    for (const before of ["", "# "])
      expect(
        JSON.stringify(parse(`${before}${piece.repeat(Math.floor(60_000 / piece.length))}END`)),
        piece,
      ).toContain("END");
});
