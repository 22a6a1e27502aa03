// SPDX-License-Identifier: Apache-2.0
import { afterEach, expect, it, vi } from "vitest";
import { getAgain } from "./api";

afterEach(() => vi.unstubAllGlobals());

const kSignal = new AbortController().signal;

function answering(...answers: Response[]) {
  const fetch = vi.fn(async (_path: string, _options: RequestInit) => answers.shift()!);
  vi.stubGlobal("fetch", fetch);
  return (call: number) => fetch.mock.calls[call]![1].headers as Record<string, string>;
}

it("reads the whole first, then what changed", async () => {
  const whole = { rows: [{ id: "a" }, { id: "b", n: 1 }] };
  const asked = answering(
    Response.json(whole, { headers: { ETag: 'W/"1"' } }),
    Response.json([{ op: "replace", path: "/rows/1/n", value: 2 }], {
      status: 226,
      headers: { ETag: '"2"', "Delta-Base": '"1"' },
    }),
    new Response(null, { status: 304, headers: { ETag: '"2"' } }),
  );
  const first = await getAgain<typeof whole>("/x", undefined, kSignal);
  expect(first).toEqual({ data: whole, etag: 'W/"1"' });
  expect(asked(0)).toEqual({});
  const second = await getAgain("/x", first, kSignal);
  expect(asked(1)["If-None-Match"]).toBe('W/"1"');
  expect(second.data.rows).toEqual([{ id: "a" }, { id: "b", n: 2 }]);
  expect(second.data.rows[0], "what did not change is the same object").toBe(first.data.rows[0]);
  expect(first.data.rows[1]!.n).toBe(1);
  expect(await getAgain("/x", second, kSignal)).toBe(second);
});

it("takes no changes of another answer, and says what the server said", async () => {
  answering(
    Response.json([], { status: 226, headers: { ETag: '"3"', "Delta-Base": '"2"' } }),
    Response.json({ code: "NOT_FOUND", message: "no sweep" }, { status: 404 }),
  );
  const known = { data: { rows: [] as number[] }, etag: 'W/"1"' };
  await expect(getAgain("/x", known, kSignal)).rejects.toThrow("another version");
  await expect(getAgain("/x", known, kSignal)).rejects.toThrow("no sweep");
});
