// SPDX-License-Identifier: Apache-2.0
import { afterEach, expect, test, vi } from "vitest";
import { draftOf, keepDraft } from "./draft";

class Storage {
  private readonly all = new Map<string, string>();
  getItem = (name: string): string | null => this.all.get(name) ?? null;
  setItem = (name: string, text: string): void => void this.all.set(name, text);
  removeItem = (name: string): void => void this.all.delete(name);
}

/** As a tab sees it: what it keeps itself, and what the browser keeps. */
function inTab(localStorage: Storage): void {
  vi.stubGlobal("window", { localStorage, sessionStorage: new Storage() });
}
afterEach(() => vi.unstubAllGlobals());

test("a draft outlives its tab, and another file has another", () => {
  const browser = new Storage();
  inTab(browser);
  keepDraft("", "name: a");
  keepDraft("extend=msf", "name: msf");
  inTab(browser);
  expect(draftOf("")).toBe("name: a");
  expect(draftOf("extend=msf")).toBe("name: msf");
  expect(draftOf("from=msf")).toBe(null);
  keepDraft("", null);
  expect(draftOf("")).toBe(null);
});

test("a tab keeps its own draft when another one writes", () => {
  const browser = new Storage();
  inTab(browser);
  keepDraft("", "mine");
  browser.setItem("ablate:draft", "another tab's");
  expect(draftOf("")).toBe("mine");
});
