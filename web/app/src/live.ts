// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import { get, onSignedOut } from "./api";
import type { Caller } from "./generated/ablate";

/** An empty sweep: anything may have changed. Run 0: something of the sweep. */
export interface Change {
  sweep: string;
  run: number;
}

export interface LiveState {
  /** signed-out: nothing more comes until somebody signs in. */
  kind: "connecting" | "live" | "lost" | "paused" | "signed-out";
  /** When the server was last heard, for the banner. */
  since: Date;
  /** Why the scheduler can store nothing, or empty. */
  trouble: string;
  /** Why the session has ended, or empty. */
  ended: string;
  /** Why the server gives this page no stream, or empty: nothing is wrong with it. */
  refused: string;
}

const kAnything: Change = { sweep: "", run: 0 };
const kRetryMs = 2000;
/** Heartbeats that may be missed before the server counts as gone: a frozen one closes nothing. */
const kMissed = 3;

/** The tab's one event stream: open while the tab is visible, opened again when it breaks or falls silent. */
class Live {
  state: LiveState = { kind: "connecting", since: new Date(), trouble: "", ended: "", refused: "" };
  private source: EventSource | undefined;
  private retry: number | undefined;
  private watchdog: number | undefined;
  private heartbeatMs = 5000; // until the server says how often it sends one
  private heard = new Date();
  private readonly listeners = new Set<(change: Change) => void>();
  private readonly watchers = new Set<(state: LiveState) => void>();

  start(): void {
    onSignedOut((why) => this.end(why));
    document.addEventListener("visibilitychange", () => (document.hidden ? this.pause() : this.open()));
    if (!document.hidden) this.open();
  }
  onChange(listener: (change: Change) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
  onState(watcher: (state: LiveState) => void): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  private open(): void {
    if (this.state.ended) return;
    this.close();
    const source = new EventSource("/api/v1/events");
    this.source = source;
    this.watch();
    source.onopen = () => {
      this.hear();
      // what happened while nobody listened is not told again
      this.tell(kAnything);
      this.refuse("");
      this.set("live");
    };
    source.addEventListener("change", (event) => {
      this.hear();
      this.tell(JSON.parse(event.data) as Change);
    });
    source.addEventListener("heartbeat", (event) => {
      const { every_ms, trouble = "" } = JSON.parse(event.data) as { every_ms: number; trouble?: string };
      this.heartbeatMs = every_ms;
      this.hear();
      this.say(trouble);
    });
    source.addEventListener("signed-out", (event) =>
      this.end((JSON.parse((event as MessageEvent<string>).data) as { why: string }).why),
    );
    source.onerror = () => {
      this.lose();
      // a stream does not say why it was refused: whether nobody is signed in any more, or too many pages are
      // open, this does
      void get<Caller>("/whoami", new AbortController().signal)
        .then((caller) => this.refuse(caller.no_events || ""))
        .catch(() => undefined);
    };
  }
  private end(why: string): void {
    if (this.state.ended) return;
    this.close();
    this.state = { ...this.state, kind: "signed-out", ended: why };
    this.show();
  }
  private lose(): void {
    if (this.state.ended) return;
    this.set("lost");
    this.close();
    this.retry = window.setTimeout(() => this.open(), kRetryMs);
  }
  private hear(): void {
    this.heard = new Date();
    this.watch();
  }
  private watch(): void {
    window.clearTimeout(this.watchdog);
    this.watchdog = window.setTimeout(() => this.lose(), kMissed * this.heartbeatMs);
  }
  private pause(): void {
    if (this.state.ended) return;
    this.close();
    this.set("paused");
  }
  private close(): void {
    window.clearTimeout(this.retry);
    window.clearTimeout(this.watchdog);
    this.source?.close();
    this.source = undefined;
  }
  private tell(change: Change): void {
    for (const listener of [...this.listeners]) listener(change);
  }
  private set(kind: LiveState["kind"]): void {
    if (kind === this.state.kind) return;
    this.state = { ...this.state, kind, since: kind === "lost" ? this.heard : new Date() };
    this.show();
  }
  private refuse(refused: string): void {
    if (refused === this.state.refused) return;
    this.state = { ...this.state, refused };
    this.show();
  }
  private say(trouble: string): void {
    if (trouble === this.state.trouble) return;
    this.state = { ...this.state, trouble };
    this.show();
  }
  private show(): void {
    for (const watcher of [...this.watchers]) watcher(this.state);
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
