// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { Heard } from "./heard";
import { kAnything } from "./stream";

const of = (sweep: string, run = 0) => ({ sweep, run });
const names = (heard: Heard, place: string): string =>
  heard
    .since(place)
    .map(({ sweep }) => sweep)
    .join("");

test("who begins later is told what the stream has told behind its place, once each", () => {
  const heard = new Heard();
  heard.begin("8f-10");
  heard.add(of("a"), "8f-11");
  heard.add(of("b"), "8f-12");
  heard.add(of("a"), "8f-13");
  expect(names(heard, "8f-10")).toBe("ba");
  expect(names(heard, "8f-12")).toBe("a");
  expect(names(heard, "8f-13")).toBe("");
  expect(names(heard, "8f-20")).toBe(""); // the stream will say
});

test("of changes that are told together none is lost to who stands between them", () => {
  const heard = new Heard();
  heard.begin("8f-10");
  heard.add(of("a"), "8f-10"); // without a place of its own
  expect(names(heard, "8f-10")).toBe("a");
  heard.add(of("b"), "8f-12");
  expect(names(heard, "8f-10")).toBe("ab");
  expect(names(heard, "8f-11")).toBe("ab");
  expect(names(heard, "8f-12")).toBe("");
});

test("where it is not known what changed, anything may have", () => {
  const heard = new Heard();
  expect(heard.since("8f-10")).toEqual([kAnything]);
  heard.begin("8f-10");
  expect(heard.since("8f-9")).toEqual([kAnything]);
  expect(heard.since("")).toEqual([kAnything]);
  heard.add(kAnything, "31-5"); // the server was started anew
  heard.add(of("a"), "31-6");
  expect(heard.since("8f-10")).toEqual([kAnything]);
  expect(names(heard, "31-5")).toBe("a");
  for (let i = 7; i < 1000; ++i) heard.add(of("x", i), `31-${i}`);
  expect(heard.since("31-6")).toEqual([kAnything]);
  expect(heard.since("31-990").length).toBe(9);
});
