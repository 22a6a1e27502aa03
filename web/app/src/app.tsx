// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { Notice } from "./components/notice";
import { moment } from "./format";
import { useLiveState, type LiveState } from "./live";
import { RunPage } from "./pages/run/page";
import { SweepPage } from "./pages/sweep/page";
import { SweepsPage } from "./pages/sweeps/page";
import { WorkersPage } from "./pages/workers/page";
import { Link, useAddress } from "./router";

export function App() {
  const address = useAddress();
  const state = useLiveState();
  const segments = address.pathname.split("/").filter(Boolean);
  useEffect(() => {
    // a new page starts at its heading, for those who hear it as well
    document.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
  }, [address.pathname]);
  return (
    <>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="bar">
        <Link class="brand" href="/" aria-label="ablate, all sweeps">
          <svg viewBox="0 0 32 32" width="20" height="20" aria-hidden="true">
            <rect width="32" height="32" rx="7" fill="var(--accent)" />
            <path
              d="M7 10h18M7 16h11M7 22h15"
              stroke="var(--panel)"
              stroke-width="3.2"
              stroke-linecap="round"
            />
          </svg>
          ablate
        </Link>
        <nav aria-label="Pages">
          <NavLink href="/" here={segments[0] !== "workers"}>
            Sweeps
          </NavLink>
          <NavLink href="/workers" here={segments[0] === "workers"}>
            Workers
          </NavLink>
        </nav>
        <LiveMark state={state} />
      </header>
      {state.kind === "lost" && (
        <div class="banner" role="status">
          <strong>No connection to the server since {moment(state.since.toISOString())}.</strong> What you see
          may be out of date; trying again every two seconds.
        </div>
      )}
      {state.trouble && (
        <div class="banner" role="alert">
          <strong>Nothing can be stored.</strong> {state.trouble}
        </div>
      )}
      <main id="main">{page(segments)}</main>
    </>
  );
}

function page(segments: string[]): ComponentChildren {
  const [kind, rawId, more] = segments;
  const id = rawId === undefined ? undefined : decode(rawId);
  if (more !== undefined) return <NoSuchPage />;
  if (kind === undefined || (kind === "sweeps" && id === undefined)) return <SweepsPage />;
  if (kind === "sweeps" && id !== undefined) return <SweepPage key={id} name={id} />;
  if (kind === "runs" && id !== undefined && /^[1-9]\d*$/.test(id))
    return <RunPage key={id} run={Number(id)} />;
  if (kind === "workers") return <WorkersPage />;
  return <NoSuchPage />;
}

function NoSuchPage() {
  return (
    <>
      <h1 tabIndex={-1}>No such page</h1>
      <Notice kind="empty" title="There is nothing at this address.">
        <Link href="/">All sweeps</Link>
      </Notice>
    </>
  );
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function NavLink({ href, here, children }: { href: string; here: boolean; children: string }) {
  return (
    <Link href={href} {...(here ? { "aria-current": "page" as const } : {})}>
      {children}
    </Link>
  );
}

const kLiveText: Record<LiveState["kind"], string> = {
  connecting: "Connecting…",
  live: "Live",
  lost: "Reconnecting…",
  paused: "Paused",
};

function LiveMark({ state }: { state: LiveState }) {
  return (
    <span class={`live live-${state.kind}`} role="status">
      <span class="dot" aria-hidden="true" />
      {kLiveText[state.kind]}
    </span>
  );
}
