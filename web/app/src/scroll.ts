// SPDX-License-Identifier: Apache-2.0
import { keep, kept } from "./kept";

/** Where a page is scrolled to, and which boxes in it are: their attribute `data-scroll` names them. */
interface Place {
  page: number;
  boxes: Record<string, [left: number, top: number]>;
}

const kKept = "ablate:scroll";
/** Entries of the history whose places are kept. */
const kMost = 100;
/** How long a place is looked for in content that comes late. */
const kPatienceMs = 30_000;
/** It is found when it has stood for so long. */
const kStillMs = 400;
const kInput = ["wheel", "touchstart", "pointerdown", "keydown"];

const places = new Map<string, Place>();
let here = "";
let count = 0;
let stop = (): void => {};
let busy = false;

/** The state of a new entry of the history. */
export const newEntry = (): { entry: string } => ({ entry: `${Date.now()}-${++count}` });

function enter(): boolean {
  const known: unknown = history.state?.entry;
  // the browser makes an entry of its own for a link to a part of this page
  if (typeof known !== "string") history.replaceState(newEntry(), "");
  here = history.state.entry;
  return typeof known === "string";
}

function boxes(): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>("[data-scroll]")];
}

function remember(): void {
  if (busy) return;
  const scrolled = boxes().flatMap((box): [string, [number, number]][] =>
    box.scrollLeft || box.scrollTop ? [[box.dataset.scroll!, [box.scrollLeft, box.scrollTop]]] : [],
  );
  places.delete(here); // the newest last
  places.set(here, { page: window.scrollY, boxes: Object.fromEntries(scrolled) });
  if (places.size > kMost) places.delete(places.keys().next().value!);
}

/** Calls `reach` with each frame until it has said true for a while and nothing loads any more, or somebody scrolls. */
function until(reach: () => boolean): void {
  stop();
  const end = performance.now() + kPatienceMs;
  let reached = Infinity;
  let frame = 0;
  const step = (now: number): void => {
    const isThere = reach() && !document.querySelector("main .skeleton");
    reached = isThere ? Math.min(reached, now) : Infinity;
    if (now > end || now - reached > kStillMs) stop();
    else frame = requestAnimationFrame(step);
  };
  const listening = new AbortController();
  stop = () => {
    busy = false;
    cancelAnimationFrame(frame);
    listening.abort();
  };
  busy = true;
  for (const input of kInput)
    window.addEventListener(input, stop, { capture: true, passive: true, signal: listening.signal });
  frame = requestAnimationFrame(step);
}

function returnTo(place: Place): void {
  until(() => {
    if (Math.abs(window.scrollY - place.page) > 1) window.scrollTo({ top: place.page, behavior: "instant" });
    const all = boxes();
    for (const box of all) {
      const [left, top] = place.boxes[box.dataset.scroll!] ?? [0, 0];
      if (Math.abs(box.scrollLeft - left) > 1) box.scrollLeft = left;
      if (Math.abs(box.scrollTop - top) > 1) box.scrollTop = top;
    }
    return (
      Math.abs(window.scrollY - place.page) <= 1 &&
      Object.entries(place.boxes).every(([name, [left, top]]) =>
        all.some(
          (box) =>
            box.dataset.scroll === name &&
            Math.abs(box.scrollLeft - left) <= 1 &&
            Math.abs(box.scrollTop - top) <= 1,
        ),
      )
    );
  });
}

/** Shows the part of the page that the address names, as soon as it is there. */
function showPart(): void {
  const name = location.hash.slice(1);
  until(() => {
    const part = document.getElementById(name);
    part?.scrollIntoView({ behavior: "instant" });
    return part !== null;
  });
}

/** Before the history gets another entry, or this one another address. */
export function leave(): void {
  remember(); // not what is on its way to its place
  stop();
}

/** A link has led here. `other`: to another page, which begins at its top. */
export function arrive(other: boolean): void {
  enter();
  if (location.hash) showPart();
  else if (other) window.scrollTo(0, 0);
}

/** Back and forward, and a reload, return to where the page was scrolled to. To be called once, before anything is drawn. */
export function keepPlaces(): void {
  history.scrollRestoration = "manual";
  try {
    for (const [entry, place] of JSON.parse(kept("sessionStorage", kKept) ?? "[]")) places.set(entry, place);
  } catch {
    // of another version
  }
  const look = (): void => {
    const place = enter() ? places.get(here) : undefined;
    if (place) returnTo(place);
    else if (location.hash) showPart();
  };
  look();
  window.addEventListener("popstate", () => {
    leave(); // of the entry that was shown until now
    look();
  });
  window.addEventListener("scroll", remember, { capture: true, passive: true });
  window.addEventListener("pagehide", () => {
    remember();
    keep("sessionStorage", kKept, JSON.stringify([...places]));
  });
}
