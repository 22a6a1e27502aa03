// SPDX-License-Identifier: Apache-2.0
import type { ComponentType } from "preact";

/**
 * What a page is: the export `page` of pages/…/page.tsx. Its folder is its address, where a name in brackets stands for one segment:
 * pages/runs/[run]/page.tsx is shown at /runs/7. No list names it.
 */
export interface Page {
  /** What the tab is named after; of a page of one thing, by that thing's id. */
  title: string | ((id: string) => string);
  /** Its place in the bar at the top, from 0, named as its title; the first is at / as well. Without: it is reached by links. */
  nav?: number;
  /** Of a page in the bar: the letter behind "g", if not the first one of its title. */
  key?: string;
  /** Which of the bar's pages it belongs to, if not the one of its first folder. */
  under?: string;
  /** Whether there can be such a thing, where not every id will do. */
  accepts?: (id: string) => boolean;
  /** What its address looks like, for who wrote another: "/runs/17, with the run's number". With `accepts`. */
  example?: string;
  /** `id`: the segment that the name in brackets stands for. */
  View: ComponentType<{ id: string }>;
}
