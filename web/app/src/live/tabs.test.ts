// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { kAnything, type Change } from "./stream";
import { Tabs, type FromTab, type ToTab } from "./tabs";

/** The server's side of an event stream. */
class FakeSource {
  static all: FakeSource[] = [];
  onerror = (): void => {};
  private readonly listeners = new Map<string, (event: unknown) => void>();
  constructor(readonly url: string) {
    FakeSource.all.push(this);
  }
  addEventListener(name: string, listener: (event: unknown) => void): void {
    this.listeners.set(name, listener);
  }
  close(): void {}
  say(name: string, data: object, lastEventId: string): void {
    this.listeners.get(name)!({ data: JSON.stringify(data), lastEventId });
  }
}

beforeEach(() => {
  FakeSource.all = [];
  vi.useFakeTimers();
  vi.stubGlobal("EventSource", FakeSource);
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** A tab whose page was served when the events stood at `place`: what it is told. */
function open(tabs: Tabs, place: string, looked_at = true) {
  const told = { changes: [] as Change[], follows: false, kind: "" };
  const port = {
    onmessage: (_: { data: FromTab }) => {},
    postMessage: (message: ToTab) => {
      if ("change" in message) told.changes.push(message.change);
      else ({ kind: told.kind, follows: told.follows } = message.state);
    },
    close: () => {},
  };
  tabs.add(port as unknown as MessagePort);
  port.onmessage({ data: { say: "began", place } });
  port.onmessage({ data: { say: "looked-at", yes: looked_at } });
  return { told, look: (yes: boolean) => port.onmessage({ data: { say: "looked-at", yes } }) };
}
const of = (sweep: string): Change => ({ sweep, run: 0 });

test("a page is told what has changed since it was served", () => {
  const tab = open(new Tabs(), "8f-10");
  expect(tab.told).toEqual({ changes: [], follows: true, kind: "connecting" });
  const [stream] = FakeSource.all as [FakeSource];
  expect(stream.url).toBe("/api/v1/events?after=8f-10");
  stream.say("heartbeat", { every_ms: 5000 }, "");
  stream.say("change", of("a"), "8f-12");
  expect(tab.told).toEqual({ changes: [of("a")], follows: true, kind: "live" });
});

test("a second tab is told what the stream has told since its page was served, and no more", () => {
  const tabs = new Tabs();
  open(tabs, "8f-10");
  const [stream] = FakeSource.all as [FakeSource];
  stream.say("change", of("a"), "8f-11");
  stream.say("change", of("b"), "8f-12");
  expect(open(tabs, "8f-11").told.changes).toEqual([of("b")]);
  expect(open(tabs, "8f-12").told.changes).toEqual([]);
  expect(open(tabs, "8f-3").told.changes, "the stream began behind it").toEqual([kAnything]);
  expect(open(tabs, "77-3").told.changes, "of another process").toEqual([kAnything]);
  expect(FakeSource.all.length).toBe(1);
});

test("a tab that nobody looks at is told when somebody does", () => {
  const tabs = new Tabs();
  open(tabs, "8f-10");
  FakeSource.all[0]!.say("change", of("a"), "8f-11");
  const tab = open(tabs, "8f-10", false);
  FakeSource.all[0]!.say("change", of("b"), "8f-12");
  expect(tab.told.changes).toEqual([]);
  tab.look(true);
  expect(tab.told.changes).toEqual([of("a"), of("b")]);
});

test("without a place from the server, nothing is followed until the stream is open", () => {
  const tab = open(new Tabs(), "");
  expect(tab.told.follows).toBe(false);
  expect(FakeSource.all[0]!.url).toBe("/api/v1/events");
  FakeSource.all[0]!.say("heartbeat", { every_ms: 5000 }, "8f-4");
  expect(tab.told).toEqual({ changes: [], follows: true, kind: "live" });
});
