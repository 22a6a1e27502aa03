// SPDX-License-Identifier: Apache-2.0

/** Where a link in notes may lead: to another site, a mail address, or within the dashboard. */
export function isSafe(href: string): boolean {
  try {
    return ["http:", "https:", "mailto:"].includes(new URL(href, "https://ablate.invalid/").protocol);
  } catch {
    return false;
  }
}
