// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { readableLog } from "./log_text";

test("escape sequences leave no boxes", () => {
  expect(readableLog("\u001b[1;31mred\u001b[0m and \u001b[38;2;1;2;3mfine\u001b[K\n")).toBe("red and fine\n");
  expect(readableLog("\u001b]0;a title\u0007log \u001b]8;;http://x\u001b\\link\u001b]8;;\u001b\\")).toBe(
    "log link",
  );
  expect(readableLog("bell\u0007 tab\there\u0000")).toBe("bell tab\there");
});

test("a bar that is drawn over itself is one line, as it was at last", () => {
  expect(readableLog("start\n 1%\r 50%\r100%\ndone\r\n")).toBe("start\n100%\ndone\n");
  expect(readableLog(" 1%\r 50%\r")).toBe(" 50%");
});
