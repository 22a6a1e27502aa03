// SPDX-License-Identifier: Apache-2.0
import { onSignedOut } from "../api";
import { Heard } from "./heard";
import { kAnything, Stream, type Change, type LiveState } from "./stream";

/** What a tab says. */
export type FromTab =
  /** First of all: where the events stood when its page was served, or empty. */
  | { say: "began"; place: string }
  | { say: "looked-at"; yes: boolean }
  | { say: "signed-out"; why: string }
  /** The tab is gone when nobody holds this lock any more: a closed tab says nothing. */
  | { say: "lock"; name: string };
/** What a tab is told. */
export type ToTab = { change: Change } | { state: LiveState };

/** Beyond this a tab that was not looked at is told that anything may have changed. */
const kMostMissed = 256;

interface Tab {
  port: MessagePort;
  looked_at: boolean;
  missed: Map<string, Change>;
}

/**
 * One event stream for all tabs of a browser, open while any of them is looked at: a browser has six connections to a server,
 * and a stream for each tab would leave the seventh tab none to read anything with.
 */
export class Tabs {
  private readonly tabs = new Set<Tab>();
  private readonly heard = new Heard();
  private readonly stream = new Stream(
    (change, place) => {
      this.heard.add(change, place);
      this.tabs.forEach((tab) => this.tell(tab, change));
    },
    (state) => this.tabs.forEach((tab) => this.send(tab, { state })),
  );

  constructor() {
    onSignedOut((why) => this.stream.end(why));
  }

  add(port: MessagePort): void {
    const tab: Tab = { port, looked_at: false, missed: new Map() };
    this.tabs.add(tab);
    this.stream.begin(); // its page has just been served
    port.onmessage = ({ data }: MessageEvent<FromTab>) => {
      if (data.say === "began") this.begin(tab, data.place);
      else if (data.say === "looked-at") this.look(tab, data.yes);
      else if (data.say === "signed-out") this.stream.end(data.why);
      else void navigator.locks.request(data.name, () => this.remove(tab));
    };
  }
  private begin(tab: Tab, place: string): void {
    if (this.stream.beginAt(place)) this.heard.begin(place);
    else if (place) this.heard.since(place).forEach((change) => this.tell(tab, change));
    this.send(tab, { state: this.stream.state });
  }
  private remove(tab: Tab): void {
    this.tabs.delete(tab);
    tab.port.close();
    this.openOrPause();
  }
  private look(tab: Tab, yes: boolean): void {
    tab.looked_at = yes;
    if (yes) {
      const missed = [...tab.missed.values()];
      tab.missed.clear();
      missed.forEach((change) => this.tell(tab, change));
    }
    this.openOrPause();
  }
  private openOrPause(): void {
    const wanted = [...this.tabs].some((tab) => tab.looked_at);
    const { kind } = this.stream.state;
    if (!wanted) this.stream.pause();
    else if (kind === "connecting" || kind === "paused") this.stream.open();
  }
  private tell(tab: Tab, change: Change): void {
    if (tab.looked_at) return this.send(tab, { change });
    if (tab.missed.size >= kMostMissed) (tab.missed.clear(), (change = kAnything));
    tab.missed.set(JSON.stringify(change), change);
  }
  private send(tab: Tab, message: ToTab): void {
    tab.port.postMessage(message);
  }
}
