// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { distance, nearest, type Address } from "./near";

const kPages: Address[] = [
  { folders: ["runs", "[run]"], accepts: (run) => /^\d+$/.test(run) },
  { folders: ["sweeps"] },
  { folders: ["sweeps", "[name]"] },
  { folders: ["workers"] },
];

test("the distance of two words", () => {
  expect(distance("", "abc")).toBe(3);
  expect(distance("sweep", "sweeps")).toBe(1);
  expect(distance("wrokers", "workers")).toBe(2);
});

test("a misspelt address leads to the page that was meant, with what it names", () => {
  expect(nearest(["sweep", "msf%20a"], kPages)).toBe("/sweeps/msf%20a");
  expect(nearest(["Worker"], kPages)).toBe("/workers");
  expect(nearest(["run", "7"], kPages)).toBe("/runs/7");
  expect(nearest(["sweeps", "msf", "table"], kPages)).toBe("/sweeps/msf");
  expect(nearest(["runs"], kPages)).toBe(undefined);
  expect(nearest(["nonsense", "msf"], kPages)).toBe(undefined);
  expect(nearest([], kPages)).toBe(undefined);
});

test("a page below one that has a name is an address of its own", () => {
  const others = [["sweeps", "[name]", "failures"], ["tables"], ["queue"], ["compare"]];
  const pages = [...kPages, ...others.map((folders) => ({ folders }))];
  expect(nearest(["sweeps", "msf", "failure"], pages)).toBe("/sweeps/msf/failures");
  expect(nearest(["tabels"], pages)).toBe("/tables");
  expect(nearest(["sweeps", "msf", "nonsense"], pages)).toBe("/sweeps/msf");
});

test("what a page does not accept is not suggested", () => {
  expect(nearest(["runs", "abc"], kPages)).toBe(undefined);
  expect(nearest(["run", "abc"], kPages)).toBe(undefined);
});
