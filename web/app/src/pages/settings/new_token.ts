// SPDX-License-Identifier: Apache-2.0

/** A token as access/token.h has it: `text` is the secret, for its holder alone; the scheduler gets `id` and `sha256`. */
export interface NewToken {
  id: string;
  text: string;
  sha256: string;
}

const hex = (bytes: Uint8Array): string =>
  [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

/** Of the browser's randomness. Throws: Error where the page came over a network without TLS: browsers have no SHA-256 there. */
export async function newToken(): Promise<NewToken> {
  if (!crypto.subtle)
    throw new Error("This page came without TLS: use 'ablate token create' on the scheduler's machine.");
  const id = hex(crypto.getRandomValues(new Uint8Array(6)));
  const text = `abl_${id}_${base64url(crypto.getRandomValues(new Uint8Array(32)))}`;
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return { id, text, sha256: hex(new Uint8Array(digest)) };
}
