// SPDX-License-Identifier: Apache-2.0
import { useEffect } from "preact/hooks";
import { useCaller } from "./acting/caller";
import { SaidCorner } from "./acting/said";
import { signOut } from "./api";
import { Keys } from "./components/keys";
import { Notice } from "./components/notice";
import { moment } from "./format";
import { useLiveState, type LiveState } from "./live/live";
import { nearest } from "./near";
import type { Page } from "./page";
import { Link, useAddress } from "./router";
import { useTitle } from "./title";

/** Every page there is, by the folders of its address. */
const kPages = Object.entries(import.meta.glob<{ page: Page }>("./pages/**/page.tsx", { eager: true })).map(
  ([file, { page }]) => ({ folders: file.split("/").slice(2, -1), page }),
);
/** Pages in the top bar, in order. */
const kBar = kPages
  .flatMap(({ folders, page: { nav, title, key } }) =>
    nav !== undefined && typeof title === "string"
      ? [{ path: `/${folders.join("/")}`, nav, title, key: key ?? title[0]!.toLowerCase() }]
      : [],
  )
  .sort((a, b) => a.nav - b.nav);
const kHome = kBar[0]!.path;
/** "g" and a letter open a page. */
const kKeys = [...kBar, { key: "n", path: "/submit", title: "New sweep" }];

export function App() {
  const address = useAddress();
  const state = useLiveState();
  const { title, under, View, id } = shownAt(address.pathname);
  useTitle(title);
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
        <Link class="brand" href="/" aria-label="ablate, home">
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
          {kBar.map(({ path, title: name }) => (
            <NavLink key={path} href={path === kHome ? "/" : path} here={path === under}>
              {name}
            </NavLink>
          ))}
        </nav>
        <SubmitLink here={under === "/submit"} />
        <LiveMark state={state} />
        <Keys pages={kKeys} />
        {!state.ended && <Account />}
      </header>
      {state.kind === "signed-out" && (
        <div class="banner" role="alert">
          <strong>You are signed out: {state.ended}.</strong> What you see is not kept up to date.{" "}
          <a href={`/sign-in?to=${encodeURIComponent(address.pathname + address.search)}`}>Sign in</a>
        </div>
      )}
      {state.kind === "lost" && state.refused && (
        <div class="banner" role="status">
          <strong>This page is not kept up to date:</strong> {state.refused}. Trying again every two seconds.
        </div>
      )}
      {state.kind === "lost" && !state.refused && (
        <div class="banner" role="status">
          <strong>No connection to the server since {moment(state.since.toISOString())}.</strong> What you see
          may be out of date; trying again every two seconds. On the server's machine <code>ablate up</code>{" "}
          starts it.
        </div>
      )}
      {state.trouble && (
        <div class="banner" role="alert">
          <strong>Nothing can be stored.</strong> {state.trouble}
        </div>
      )}
      <main id="main">
        <View key={id} id={id} />
      </main>
      <SaidCorner />
    </>
  );
}

/** The page that an address shows. */
function shownAt(pathname: string): { title: string; under: string; View: Page["View"]; id: string } {
  const segments = (pathname === "/" ? kHome : pathname).split("/").filter(Boolean);
  for (const { folders, page } of kPages) {
    const named = folders.findIndex((folder) => folder.startsWith("["));
    if (folders.length !== segments.length) continue;
    if (!folders.every((folder, i) => i === named || folder === segments[i])) continue;
    const id = decode(segments[named] ?? "");
    if (page.accepts && !page.accepts(id)) continue;
    const title = typeof page.title === "string" ? page.title : page.title(id);
    return { title, under: page.under ?? `/${folders[0]}`, View: page.View, id };
  }
  return { title: "No such page", under: "", View: NoSuchPage, id: "" };
}

function NoSuchPage() {
  const segments = useAddress().pathname.split("/").filter(Boolean);
  const near = nearest(
    segments,
    kPages.map(({ folders, page }) => ({ folders, accepts: page.accepts })),
  );
  const example = kPages.find(({ folders, page }) => page.example && folders[0] === segments[0])?.page
    .example;
  return (
    <>
      <h1 tabIndex={-1}>No such page</h1>
      <Notice kind="empty" title="Nothing is at this address.">
        {example && `Expected ${example}. `}
        {near && (
          <>
            Did you mean <Link href={near}>{decode(near)}</Link>?{" "}
          </>
        )}
        <Link href="/sweeps">All sweeps</Link>
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
  "signed-out": "Signed out",
};

/** Only for callers who may submit. */
function SubmitLink({ here }: { here: boolean }) {
  if (!useCaller()?.may.includes("Submit")) return null;
  return (
    <Link class="button" href="/submit" {...(here ? { "aria-current": "page" as const } : {})}>
      New sweep
    </Link>
  );
}

/** Who is signed in; nothing without sign-in. */
function Account() {
  const caller = useCaller();
  if (!caller?.token) return null;
  return (
    <span class="account">
      {caller.name}
      <button type="button" class="quiet" onClick={() => void signOut()}>
        Sign out
      </button>
    </span>
  );
}

function LiveMark({ state }: { state: LiveState }) {
  return (
    <span class={`live live-${state.kind}`} role="status">
      <span class="dot" aria-hidden="true" />
      {kLiveText[state.kind]}
    </span>
  );
}
