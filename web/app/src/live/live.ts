// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import { onSignedOut } from "../api";
import { connecting, type Change, type LiveState } from "./stream";
import { Tabs, type FromTab, type ToTab } from "./tabs";

export type { Change, LiveState } from "./stream";

/** So long a page waits for the stream before it reads without: what changes meanwhile would be read twice. */
const kPatienceMs = 2000;

/** What this tab hears of the event stream. */
class Live {
  state = connecting();
  /** Where the events stood when this page was served: what it reads is followed by what changed since. Empty: that was not said. */
  private place = "";
  private port: MessagePort | undefined;
  private readonly listeners = new Set<(change: Change) => void>();
  private readonly watchers = new Set<(state: LiveState) => void>();
  private readonly patience = new Promise<void>((over) => setTimeout(over, kPatienceMs));

  start(): void {
    this.place = document.querySelector<HTMLMetaElement>('meta[name="ablate-place"]')?.content ?? "";
    this.state = connecting(this.place);
    onSignedOut((why) => this.say({ say: "signed-out", why }));
    document.addEventListener("visibilitychange", () => this.sayWhetherLookedAt());
    const alone = () => {
      const { port1, port2 } = new MessageChannel();
      new Tabs().add(port1);
      this.connect(port2);
    };
    if (typeof SharedWorker === "undefined" || !navigator.locks) return alone();
    const worker = new SharedWorker(new URL("./shared.ts", import.meta.url), {
      type: "module",
      name: "ablate",
    });
    worker.onerror = () => this.port === worker.port && alone(); // its script did not come
    this.connect(worker.port);
  }
  onChange(listener: (change: Change) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
  onState(watcher: (state: LiveState) => void): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }
  /** Until what is read will be followed by what changes, or that is not to be expected soon. */
  async ready(): Promise<void> {
    const unsettled = () => this.state.kind === "connecting" && !this.state.follows && !document.hidden;
    if (!unsettled()) return;
    let stop = () => {};
    const settled = new Promise<void>((done) => (stop = this.onState(() => !unsettled() && done())));
    await Promise.race([settled, this.patience]);
    stop();
  }

  private connect(port: MessagePort): void {
    this.port = port;
    port.onmessage = ({ data }: MessageEvent<ToTab>) => {
      if ("change" in data) return [...this.listeners].forEach((listener) => listener(data.change));
      this.state = data.state;
      [...this.watchers].forEach((watcher) => watcher(this.state));
    };
    this.say({ say: "began", place: this.place });
    this.sayWhetherLookedAt();
    const name = `ablate-tab-${crypto.randomUUID()}`;
    // held as long as the tab is there
    void navigator.locks?.request(name, () => {
      this.say({ say: "lock", name });
      return new Promise(() => {});
    });
  }
  private sayWhetherLookedAt(): void {
    this.say({ say: "looked-at", yes: !document.hidden });
  }
  private say(message: FromTab): void {
    this.port?.postMessage(message);
  }
}

export const live = new Live();

export function useLiveState(): LiveState {
  const [state, setState] = useState(live.state);
  useEffect(() => {
    setState(live.state); // it may have changed since it was first shown
    return live.onState(setState);
  }, []);
  return state;
}
