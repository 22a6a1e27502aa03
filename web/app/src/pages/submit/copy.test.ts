// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { copyName, renamed } from "./copy";

test("a copy gets a name that is free", () => {
  expect(copyName("msf-table-1", new Set())).toBe("msf-table-1-copy");
  expect(copyName("study", new Set(["study-copy", "study-copy-2"]))).toBe("study-copy-3");
  expect(copyName("study-copy-2", new Set(["study-copy", "study-copy-2"]))).toBe("study-copy-3");
});

test("a file is renamed and stays as it is written", () => {
  const rest = "\nbase:\n  name: inner\n";
  expect(renamed(`ablate: 1\nname: study  # mine${rest}`, "a")).toBe(`ablate: 1\nname: a  # mine${rest}`);
  expect(renamed('name: "a study"\n', "b")).toBe("name: b\n");
  expect(renamed("ablate: 1\n", "b")).toBe("ablate: 1\n");
});
