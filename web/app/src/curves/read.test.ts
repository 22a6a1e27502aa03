// SPDX-License-Identifier: Apache-2.0
import { afterEach, expect, test, vi } from "vitest";
import type { Curve, CurvesResponse } from "../generated/ablate";
import { pointsOf } from "./held";
import { curveOf, isPast, Reader, type CurveSet } from "./read";

/** A server whose runs have so many points of the metric "loss", one at each step; it answers one run at a time. */
class Server {
  asked: URLSearchParams[] = [];
  broken = false;
  constructor(readonly points: Map<number, number>) {
    vi.stubGlobal("fetch", (address: string) => Promise.resolve(this.answer(address)));
  }
  private answer(address: string): Response {
    const query = new URL(address, "http://server").searchParams;
    this.asked.push(query);
    if (this.broken) return Response.json({ code: "UNAVAILABLE", message: "broken" }, { status: 503 });
    const [run, ...others] = query.getAll("run").map(Number);
    const said = this.points.get(run!)!;
    const first = Number(query.get("from") ?? 0);
    const steps = Array.from({ length: Math.max(0, said - first) }, (_, i) => first + i);
    const curve: Curve = {
      ...{
        run: run!,
        name: "loss",
        said: String(said),
        points: steps.length,
        not_finite: 0,
        bucket_steps: 0,
      },
      ...{ steps, values: steps, times_ms: [] },
      ...{ bucket_middles: [], bucket_points: [], bucket_not_finite: [], bucket_means: [] },
    };
    const known = { run: run!, why_no_epochs: "", why_no_images: "", why_no_gpu_time: "", attempts: [] };
    const answer: CurvesResponse = { curves: [curve], runs: [known], left_out: others.length };
    return Response.json(answer);
  }
}

afterEach(() => void vi.unstubAllGlobals());

function reader(runs: number[]): { work: () => Promise<CurveSet>; reader: Reader } {
  const made = new Reader({ names: ["loss"], times: false, width: 10 }, undefined);
  made.want(runs);
  const work = async (): Promise<CurveSet> => {
    let last: CurveSet | undefined;
    await made.work(new AbortController().signal, (set) => (last = set));
    return last!;
  };
  return { work, reader: made };
}
const points = (set: CurveSet, run: number): number => pointsOf(curveOf(set, run, "loss")!);

test("runs that an answer has no room for are asked for again", async () => {
  const server = new Server(new Map([1, 2, 3].map((run) => [run, 5])));
  const set = await reader([1, 2, 3]).work();
  expect([set.missing, set.curves.size]).toEqual([0, 3]);
  expect(server.asked.map((query) => query.getAll("run").join())).toEqual(["1,2,3", "2,3", "3"]);
});

test("of a run that has grown what is new is read, and nothing of the others", async () => {
  const server = new Server(new Map([1, 2].map((run) => [run, 50])));
  const { work, reader: made } = reader([1, 2]);
  await work();
  server.asked = [];
  server.points.set(2, 60);
  expect(made.note({ sweep: "s", run: 2 }, () => false)).toBe(true);
  expect(made.note({ sweep: "s", run: 7 }, () => false)).toBe(false);
  const set = await work();
  expect(server.asked.map(String)).toEqual(["run=2&name=loss&width=10&from=40"]);
  expect([points(set, 1), points(set, 2)]).toEqual([50, 60]);
  expect(isPast(set, 2, 58)).toBe(true);
  expect(isPast(set, 2, 59)).toBe(false);
});

test("where more came than what is new the whole is read again", async () => {
  const server = new Server(new Map([[1, 20]]));
  const { work } = reader([1]);
  await work();
  server.asked = [];
  server.points.set(1, 2000);
  expect(points(await work(), 1)).toBe(2000);
  expect(server.asked.map((query) => query.get("from"))).toEqual(["10", null]);
});

test("what changed while the server was away is read when it is back", async () => {
  const server = new Server(new Map([1, 2].map((run) => [run, 5])));
  const { work, reader: made } = reader([1, 2]);
  await work();
  server.broken = true;
  server.points.set(1, 8);
  made.note({ sweep: "s", run: 1 }, () => false);
  await expect(work()).rejects.toThrow("broken");
  server.broken = false;
  expect(points(await work(), 1)).toBe(8);
});

test("a run that is wanted no more is forgotten", async () => {
  new Server(new Map([1, 2].map((run) => [run, 5])));
  const { work, reader: made } = reader([1, 2]);
  await work();
  made.want([2]);
  expect((await work()).curves.size).toBe(1);
});
