// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { find, firstError, logSpans, textOf } from "./log_text";

const readable = (log: string) => textOf(logSpans(log));

test("escape sequences leave no boxes", () => {
  expect(readable("\u001b[1;31mred\u001b[0m and \u001b[38;2;1;2;3mfine\u001b[K\n")).toBe("red and fine\n");
  expect(readable("\u001b]0;a title\u0007log \u001b]8;;http://x\u001b\\link\u001b]8;;\u001b\\")).toBe(
    "log link",
  );
  expect(readable("bell\u0007 tab\there\u0000")).toBe("bell tab\there");
});

test("a bar that is drawn over itself is one line, as it was at last", () => {
  expect(readable("start\n 1%\r 50%\r100%\ndone\r\n")).toBe("start\n100%\ndone\n");
  expect(readable(" 1%\r 50%\r")).toBe(" 50%");
  expect(readable("\u001b[32m 1%\r\u001b[K\u001b[31m 50%\r\r\n")).toBe(" 50%\n");
});

test("colours are the terminal's sixteen, and last until they are taken back", () => {
  expect(logSpans("\u001b[1;31mbad\u001b[22m still\u001b[0m\nplain \u001b[97;44mx\u001b[39;49my")).toEqual([
    { text: "bad", style: "ansi-bold ansi-red" },
    { text: " still", style: "ansi-red" },
    { text: "\nplain ", style: "" },
    { text: "x", style: "ansi-white ansi-on-blue" },
    { text: "y", style: "" },
  ]);
  expect(logSpans("\u001b[38;5;196ma\u001b[48;2;1;31;3;1mb\u001b[mc").map(({ style }) => style)).toEqual([
    "",
    "ansi-bold",
    "",
  ]);
  expect(logSpans("\u001b[32mover\rwritten")).toEqual([{ text: "written", style: "ansi-green" }]);
});

test("what is looked for is found across colours, in capitals or not, and taken as it is written", () => {
  const spans = logSpans("Loss a.c \u001b[31mlo\u001b[0mss abc");
  const { spans: shown, places } = find(spans, "loss");
  expect(places).toEqual([
    { from: 0, to: 4 },
    { from: 9, to: 13 },
  ]);
  expect(textOf(shown)).toBe(textOf(spans));
  expect(shown.filter(({ match }) => match === 1)).toEqual([
    { text: "lo", style: "ansi-red", match: 1 },
    { text: "ss", style: "", match: 1 },
  ]);
  expect(find(spans, "a.c").places.length).toBe(1);
  expect(find(spans, "").spans).toBe(spans);
  expect(find(logSpans("x".repeat(2000)), "x")).toMatchObject({ places: { length: 2000 }, more: false });
  expect(find(logSpans("x".repeat(2001)), "x")).toMatchObject({ places: { length: 2000 }, more: true });
});

test("the first line that says what went wrong", () => {
  expect(firstError(logSpans("step 1\nterror of errors"))).toBe(undefined);
  expect(firstError(logSpans("12\n\u001b[31mRuntimeError\u001b[0m: x\nError"))).toEqual({ from: 3, to: 18 });
  expect(firstError(logSpans("step 1\n\u001b[31mError\u001b[0m: x"))).toEqual({ from: 7, to: 15 });
});
