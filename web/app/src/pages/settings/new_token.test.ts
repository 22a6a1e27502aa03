// SPDX-License-Identifier: Apache-2.0
import { afterEach, expect, test, vi } from "vitest";
import { newToken } from "./new_token";

afterEach(() => vi.restoreAllMocks());

test("a token is as access/token.h has it, and no two are alike", async () => {
  const tokens = await Promise.all(Array.from({ length: 20 }, newToken));
  for (const { id, text } of tokens) {
    expect(id).toMatch(/^[0-9a-f]{12}$/);
    expect(text).toMatch(new RegExp(`^abl_${id}_[A-Za-z0-9_-]{43}$`));
  }
  expect(new Set(tokens.map(({ text }) => text)).size).toBe(20);
});

test("the digest is the SHA-256 of the whole text, as sha256sum prints it", async () => {
  vi.spyOn(crypto, "getRandomValues").mockImplementation((bytes) => bytes);
  expect(await newToken()).toEqual({
    id: "000000000000",
    text: "abl_000000000000_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    sha256: "52c0e67941d36c68e5f523dfcadc475145051e3b602d86fcc374f2cf0c113cae",
  });
});
