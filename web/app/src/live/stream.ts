// SPDX-License-Identifier: Apache-2.0
import { get } from "../api";
import type { Caller } from "../generated/ablate";

/** An empty sweep: anything may have changed. Run 0: something of the sweep. */
export interface Change {
  sweep: string;
  run: number;
}

export interface LiveState {
  /** signed-out: nothing more comes until somebody signs in. */
  kind: "connecting" | "live" | "lost" | "paused" | "signed-out";
  /** When a server that is lost was last heard. */
  since: Date;
  /** Whatever changes after what is read now will be told, if need be when the connection is there again. */
  follows: boolean;
  /** Why the scheduler can store nothing, or empty. */
  trouble: string;
  /** Why the session has ended, or empty. */
  ended: string;
  /** Why the server gives this page no stream, or empty: nothing is wrong with it. */
  refused: string;
}

/** Before anything was heard. `place`: where the events stood when the page was served, or empty. */
export const connecting = (place = ""): LiveState => ({
  kind: "connecting",
  since: new Date(),
  follows: place !== "",
  trouble: "",
  ended: "",
  refused: "",
});

export const kAnything: Change = { sweep: "", run: 0 };

const kRetryMs = 2000;
/** Heartbeats that may be missed before the server counts as gone: a frozen one closes nothing. */
const kMissed = 3;

/** The event stream: opened again when it breaks or falls silent, behind the last event that was heard. */
export class Stream {
  state = connecting();
  private source: EventSource | undefined;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private watchdog: ReturnType<typeof setTimeout> | undefined;
  private heartbeatMs = 5000; // until the server says how often it sends one
  private heard = new Date();
  private place = ""; // id of the last event

  constructor(
    private readonly tell: (change: Change, place: string) => void,
    private readonly show: (state: LiveState) => void,
  ) {}

  /** What changed behind this place is to be told first. False: it stands somewhere already. */
  beginAt(place: string): boolean {
    if (this.place || !place) return false;
    this.place = place;
    this.change({ follows: true });
    return true;
  }
  open(): void {
    if (this.state.ended) return;
    this.close();
    const source = new EventSource(
      `/api/v1/events${this.place && `?after=${encodeURIComponent(this.place)}`}`,
    );
    this.source = source;
    this.watch();
    source.addEventListener("change", (event) => {
      this.hear(event);
      this.tell(JSON.parse(event.data) as Change, this.place);
    });
    source.addEventListener("heartbeat", (event) => {
      const { every_ms, trouble = "" } = JSON.parse(event.data) as { every_ms: number; trouble?: string };
      this.heartbeatMs = every_ms;
      this.hear(event);
      this.change({ trouble });
    });
    source.addEventListener("signed-out", (event) =>
      this.end((JSON.parse((event as MessageEvent<string>).data) as { why: string }).why),
    );
    source.onerror = () => {
      this.lose();
      // a stream does not say why it was refused: whether nobody is signed in any more, or too many pages are
      // open, this does
      void get<Caller>("/whoami", new AbortController().signal)
        .then((caller) => this.change({ refused: caller.no_events || "" }))
        .catch(() => undefined);
    };
  }
  /** Nobody looks. */
  pause(): void {
    if (this.state.ended) return;
    this.close();
    this.change({ kind: "paused" });
  }
  /** Nobody is signed in any more. */
  end(why: string): void {
    if (this.state.ended) return;
    this.close();
    this.change({ kind: "signed-out", ended: why });
  }
  /** Somebody may be again. */
  begin(): void {
    if (!this.state.ended) return;
    this.change({ kind: "connecting", ended: "" });
  }

  private hear(event: MessageEvent): void {
    this.heard = new Date();
    this.watch();
    // an event without an id leaves the one before
    this.place = event.lastEventId || this.place;
    this.change({ kind: "live", follows: this.place !== "", refused: "" });
  }
  private lose(): void {
    if (this.state.ended) return;
    this.close();
    if (this.state.kind !== "lost") this.change({ kind: "lost", since: this.heard });
    this.retry = setTimeout(() => this.open(), kRetryMs);
  }
  private watch(): void {
    clearTimeout(this.watchdog);
    this.watchdog = setTimeout(() => this.lose(), kMissed * this.heartbeatMs);
  }
  private close(): void {
    clearTimeout(this.retry);
    clearTimeout(this.watchdog);
    this.source?.close();
    this.source = undefined;
  }
  private change(by: Partial<LiveState>): void {
    const old = this.state;
    if (Object.entries(by).every(([key, value]) => old[key as keyof LiveState] === value)) return;
    this.state = { ...old, ...by };
    this.show(this.state);
  }
}
