// SPDX-License-Identifier: Apache-2.0

/** Which elements are set: "0-3,7". */
export function placesIn(kept: Uint8Array): string {
  const ranges: string[] = [];
  for (let at = 0; at < kept.length; ++at) {
    if (!kept[at]) continue;
    const first = at;
    while (kept[at + 1]) ++at;
    ranges.push(first === at ? `${at}` : `${first}-${at}`);
  }
  return ranges.join(",");
}

/** FNV-1a of ids with a line feed behind each, by which the server knows that it has the same rows there. */
export function digestOf(ids: Iterable<string>): string {
  let digest = 2166136261;
  const bytes = new TextEncoder().encode(Array.from(ids, (id) => `${id}\n`).join(""));
  for (let i = 0; i < bytes.length; ++i) digest = Math.imul(digest ^ bytes[i]!, 16777619);
  return (digest >>> 0).toString(16).padStart(8, "0");
}
