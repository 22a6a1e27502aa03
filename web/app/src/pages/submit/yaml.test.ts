// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { indentBehind, kNothingOpen, tokensOf } from "./yaml";

/** "key:seeds mark:: mark:[" of lines. */
function coloured(...lines: string[]): string[] {
  let open = kNothingOpen;
  return lines.map((line) => {
    const found = tokensOf(line, open);
    open = found.open;
    return found.tokens.map(({ from, to, kind }) => `${kind} ${line.slice(from, to)}`).join(" | ");
  });
}

describe("colours of a line", () => {
  it("tell keys, texts, comments and marks", () => {
    expect(coloured('name: "a # b"  # why', "- id: a", "'a key' : 1", "plain text here")).toEqual([
      'key name | mark : | string "a # b" | comment # why',
      "mark - | key id | mark :",
      "key 'a key' | mark :",
      "",
    ]);
  });
  it("take a colon or a sign within a text for no mark", () => {
    expect(coloured("url: http://a:1#b", "at: 12:30", "a-b: c-d", "share: QKV-W")).toEqual([
      "key url | mark :",
      "key at | mark :",
      "key a-b | mark :",
      "key share | mark :",
    ]);
  });
  it("know brackets, over lines as well", () => {
    expect(coloured("- {id: a, set: {x.y: [1, 2]},", "   label: b}", "next: 1")).toEqual([
      "mark - | mark { | key id | mark : | mark , | key set | mark : | mark { | key x.y | mark : | mark [ | mark , | mark ] | mark } | mark ,",
      "key label | mark : | mark }",
      "key next | mark :",
    ]);
  });
  it("know quotes that are open, and both kinds of escapes", () => {
    expect(coloured('a: "one \\" two', 'three" # c', "b: 'it''s' # d")).toEqual([
      'key a | mark : | string "one \\" two',
      'string three" | comment # c',
      "key b | mark : | string 'it''s' | comment # d",
    ]);
  });
  it("leave texts behind | and > alone", () => {
    expect(coloured("a: |", "  b: 1", "", "  # none", "c: 2", "- >-", "  d: 1", "e: 1")).toEqual([
      "key a | mark : | mark |",
      "",
      "",
      "",
      "key c | mark :",
      "mark - | mark >-",
      "",
      "key e | mark :",
    ]);
  });
  it("know anchors, tags and documents", () => {
    expect(coloured("---", "a: &x 1", "b: *x", "c: !t 2")).toEqual([
      "word ---",
      "key a | mark : | word &x",
      "key b | mark : | word *x",
      "key c | mark : | word !t",
    ]);
  });
  it("are in order and within the line, whatever it is", () => {
    const letters = [
      "a",
      " ",
      ":",
      "#",
      '"',
      "'",
      "[",
      "]",
      "{",
      "}",
      ",",
      "-",
      "|",
      ">",
      "&",
      "!",
      "\\",
      "?",
    ];
    for (let seed = 1; seed < 3000; ++seed) {
      let state = seed;
      const line = Array.from({ length: 12 }, () => {
        state = (state * 1103515245 + 12345) % 2147483648;
        return letters[(state >> 8) % letters.length];
      }).join("");
      let at = 0;
      for (const { from, to } of tokensOf(line, kNothingOpen).tokens) {
        expect(from, line).toBeGreaterThanOrEqual(at);
        expect(to, line).toBeLessThanOrEqual(line.length);
        at = to;
      }
    }
  });
  it("end with nothing open in each sweep file that comes with ablate", () => {
    const files = import.meta.glob<string>("../../../../../sweeps/**/*.yaml", {
      query: "?raw",
      import: "default",
      eager: true,
    });
    expect(Object.keys(files).length).toBeGreaterThan(20);
    for (const [file, text] of Object.entries(files)) {
      let open = kNothingOpen;
      for (const line of text.split("\n")) open = tokensOf(line, open).open;
      expect([file, open.quote, open.brackets]).toEqual([file, "", 0]);
    }
  });
});

describe("the indentation of the next line", () => {
  it("follows the line before", () => {
    const cases: [string, number | undefined][] = [
      ["a: 1", 0],
      ["  a: 1  # b: ", 2],
      ["a:", 2],
      ["  a:  # why", 4],
      ["  - id: a", 4],
      ["  - id:", 6],
      ["  - a", 2],
      ["- - a", 2],
      ["a: |", 2],
      ["rows: [", 2],
      ["  - {id: a,", 4],
      ["a: [1, 2]", 0],
      ["", undefined],
      ["    ", undefined],
    ];
    for (const [line, indent] of cases) expect([line, indentBehind(line, 2)]).toEqual([line, indent]);
  });
});
