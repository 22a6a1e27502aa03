// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { fileChoiceOf, fileName } from "./choice";
import { cutOf, difference, partsOf, piecesOf, type Line } from "./difference";

const signed = ({ lines }: { lines: Line[] }): string[] => lines.map(({ sign, text }) => sign + text);
const numbered = (count: number, text = (i: number) => `line ${i}`): string =>
  Array.from({ length: count }, (_, i) => `${text(i)}\n`).join("");

describe("the difference of two texts", () => {
  it("lists each line once, with its line numbers in both files", () => {
    const found = difference("a\nb\nc\n", "a\nB\nc\nd\n");
    expect(signed(found)).toEqual([" a", "-b", "+B", " c", "+d"]);
    expect(found.lines.map(({ before, after }) => [before, after])).toEqual([
      [1, 1],
      [2, undefined],
      [undefined, 2],
      [3, 3],
      [undefined, 4],
    ]);
    expect([found.added, found.removed]).toEqual([2, 1]);
  });

  it("gives back both texts, whatever they are", () => {
    const texts = [
      "",
      "\n",
      "a",
      "a\n",
      "a\n\n\n",
      "b\na\n",
      "a\r\nb\r\n",
      "a\nb",
      "x\ny\nx\ny\n",
      numbered(50),
    ];
    for (const before of texts)
      for (const after of texts) {
        const { lines } = difference(before, after);
        const side = (left: string): string =>
          lines
            .filter(({ sign }) => sign !== left)
            .map(({ text, end }) => text + end)
            .join("");
        expect([side("+"), side("-")]).toEqual([before, after]);
      }
  });

  it("says lines that only end in another way", () => {
    const found = difference("a\r\nb\r\n", "a\nb");
    expect(found.ends).toBe(2);
    expect(found.lines.map(({ end }) => end)).toEqual(["\r\n", "\r\n", "\n", ""]);
  });

  it("finds few changed lines among ten thousand, and many", () => {
    const before = numbered(10_000);
    expect(
      signed(difference(before, before.replace("line 5000\n", "other\n"))).filter((line) => line[0] !== " "),
    ).toEqual(["-line 5000", "+other"]);
    const half = difference(
      before,
      numbered(10_000, (i) => (i % 2 ? `line ${i}` : `other ${i}`)),
    );
    expect([half.added, half.removed, half.coarse]).toEqual([5000, 5000, false]);
  });

  it("marks stretches that are too long to compare line by line", () => {
    const all = difference(
      numbered(10_000, (i) => `${i % 100}`),
      numbered(10_000, (i) => `${(i * 7) % 99}`),
    );
    expect(all.coarse).toBe(true);
    expect([all.added, all.removed]).toEqual([10_000, 10_000]);
  });
});

describe("pieces of a difference", () => {
  it("fold what is unchanged but for three lines around what changed", () => {
    const before = numbered(30);
    const pieces = piecesOf(difference(before, before.replace("line 10\n", "other\n")).lines);
    expect(pieces.map(({ folded, lines }) => [folded, lines.length])).toEqual([
      [true, 7],
      [false, 8],
      [true, 16],
    ]);
  });
  it("fold no three lines", () => {
    const before = numbered(6);
    const pieces = piecesOf(difference(before, before.replace("line 5\n", "")).lines);
    expect(pieces.map(({ folded, lines }) => [folded, lines.length])).toEqual([[false, 6]]);
  });
  it("are of all lines, however many", () => {
    const many = "\n".repeat(300_000);
    const pieces = piecesOf(difference("", many).lines);
    expect(pieces.map(({ lines }) => lines.length)).toEqual([300_000]);
  });
});

describe("a line that changed", () => {
  const lines = (before: string, after: string): Line[] => difference(`${before}\n`, `${after}\n`).lines;
  it("marks its words", () => {
    const [removed, added] = lines("seeds: [0, 1]", "seeds: [0, 2]");
    expect(partsOf(removed!)!.filter(({ changed }) => changed)).toEqual([{ text: "1", changed: true }]);
    expect(partsOf(added!)!.filter(({ changed }) => changed)).toEqual([{ text: "2", changed: true }]);
  });
  it("marks none where it is another line", () => {
    expect(partsOf(lines("rows:", "{id: b}")[0]!)).toBeUndefined();
  });
  it("is shown where it differs, if it is very long", () => {
    const [removed] = lines(`${"x".repeat(50_000)}a${"y".repeat(50_000)}`, `${"x".repeat(50_000)}b`);
    const cut = cutOf(removed!);
    expect(cut.text.length).toBe(2000);
    expect(cut.text[50_000 - cut.before]).toBe("a");
    expect(cut.before + cut.text.length + cut.behind).toBe(100_001);
  });
});

describe("the address", () => {
  it("names a revision or two, of those that there are", () => {
    expect(fileChoiceOf("3", 3)).toEqual({ shown: 3 });
    expect(fileChoiceOf("1..3", 3)).toEqual({ shown: 3, before: 1 });
    for (const text of [null, "", "0", "4", "1..4", "0..1", "2..2", "1..", "..2", "x", "1e3"])
      expect(fileChoiceOf(text, 3)).toBeUndefined();
  });
  it("is kept by a file's name", () => {
    expect(fileName("s", "/home/a/sweep.yml")).toBe("sweep.yml");
    expect(fileName("s", "/home/a/sweep.yaml", 2)).toBe("sweep.revision-2.yaml");
    expect(fileName("s", "-", 2)).toBe("s.revision-2.yaml");
  });
});
