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
  for (const id of ids)
    for (const byte of new TextEncoder().encode(`${id}\n`)) digest = Math.imul(digest ^ byte, 16777619);
  return (digest >>> 0).toString(16).padStart(8, "0");
}
