// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { arrive, leave, newEntry } from "./scroll";

const kMoved = "ablate:moved";

/** The address is the state: every page reads what it shows from here. */
export function useAddress(): URL {
  const [address, setAddress] = useState(() => new URL(location.href));
  useEffect(() => {
    const update = (): void => setAddress(new URL(location.href));
    update();
    window.addEventListener("popstate", update);
    window.addEventListener(kMoved, update);
    return () => {
      window.removeEventListener("popstate", update);
      window.removeEventListener(kMoved, update);
    };
  }, []);
  return address;
}

/** `replace`: Back does not return to the present address; for changes with each key typed. */
export function navigate(href: string, how: "push" | "replace" = "push"): void {
  const before = location.pathname;
  leave();
  if (how === "push") history.pushState(newEntry(), "", href);
  else history.replaceState(history.state, "", href);
  window.dispatchEvent(new Event(kMoved));
  arrive(location.pathname !== before);
}

/** The present address with some query parameters set: once, once for each of several values, or not at all where it is null. */
export function withQuery(changes: Record<string, string | string[] | null>, hash = ""): string {
  const set = new URLSearchParams();
  for (const [name, value] of Object.entries(changes))
    for (const one of value === null ? [] : [value].flat()) set.append(name, one);
  const text = [without(Object.keys(changes)), set.toString()].filter(Boolean).join("&");
  return `${location.pathname}${text && `?${text}`}${hash}`;
}

/** What the query says beside some parameters; known, for a table has hundreds of links that set the same ones. */
const others = { of: "", texts: new Map<string, string>() };

function without(names: string[]): string {
  if (others.of !== location.search) [others.of, others.texts] = [location.search, new Map()];
  const key = names.join("\n");
  const known = others.texts.get(key);
  if (known !== undefined) return known;
  const query = new URLSearchParams(location.search);
  for (const name of names) query.delete(name);
  const text = query.toString();
  others.texts.set(key, text);
  return text;
}

interface LinkProps {
  href: string;
  class?: string;
  title?: string;
  role?: "button";
  "aria-label"?: string;
  "aria-current"?: "page" | "true";
  "aria-pressed"?: boolean;
  children?: ComponentChildren;
}

/** A real link; a plain click on it stays in the page. */
export function Link({ children, ...props }: LinkProps) {
  const onClick = (event: MouseEvent): void => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(props.href);
  };
  return (
    <a {...props} onClick={onClick}>
      {children}
    </a>
  );
}

export const sweepPath = (name: string): string => `/sweeps/${encodeURIComponent(name)}`;
export const failuresPath = (sweep: string): string => `${sweepPath(sweep)}/failures`;
/** A sweep's page narrowed to one of its rows. */
export const rowPath = (sweep: string, row: string): string =>
  `${sweepPath(sweep)}?row=${encodeURIComponent(row)}`;
/** Compares `a`, named as on the command line; the other side is chosen there. */
export const comparePath = (a: string): string => `/compare?a=${encodeURIComponent(a)}`;
export const runPath = (run: number): string => `/runs/${run}`;
