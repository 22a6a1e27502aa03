// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from "preact/hooks";
import { asApiError, get } from "../api";
import type { CurveRun, CurvesResponse } from "../generated/ablate";
import type { Change } from "../live/stream";
import { runOnChange, type Resource } from "../resource";
import {
  appended,
  bucketBegin,
  heldOf,
  isExact,
  narrowest,
  nextOf,
  widest,
  withDetail,
  type Held,
  type StepRange,
} from "./held";

export interface WantedCurves {
  runs: number[];
  /** Empty: all metrics. */
  names: string[];
  times: boolean;
  /** Of the chart, in pixels: buckets of a curve, at most. */
  width: number;
}

/** The curves that were read. */
export interface CurveSet {
  curves: Map<string, Held>;
  runs: Map<number, CurveRun>;
  /** Runs that were not read yet. */
  missing: number;
  range: StepRange | undefined;
}

const keyOf = (run: number, name: string): string => `${run} ${name}`;
export const curveOf = (set: CurveSet | undefined, run: number, name: string): Held | undefined =>
  set?.curves.get(keyOf(run, name));

/** Runs that are read on together: from the step that all of them have. */
const kTogether = 100;
/** Curves that are read together as a whole: an answer has so many points that each has at least 250 buckets. */
const kCurvesTogether = 200;

/** Reads curves once as a whole, or in a range of steps, and then what is appended to them. */
export class Reader {
  private readonly curves = new Map<string, Held>();
  private readonly runs = new Map<number, CurveRun>();
  private wanted = new Set<number>();
  private grown = new Set<number>();

  constructor(
    private readonly query: Omit<WantedCurves, "runs">,
    readonly range: StepRange | undefined,
  ) {}

  want(runs: number[]): void {
    this.wanted = new Set(runs);
    for (const run of [...this.runs.keys()]) if (!this.wanted.has(run)) this.forget(run);
  }

  /** Whether a change concerns these curves. `isPast`: nothing can come any more to what is read of the run. */
  note({ run }: Change, isPast: (run: number) => boolean): boolean {
    if (run !== 0 && (!this.wanted.has(run) || isPast(run))) return false;
    for (const each of run === 0 ? this.wanted : [run]) this.grown.add(each);
    return true;
  }

  async work(signal: AbortSignal, publish: (set: CurveSet) => void): Promise<void> {
    // no run was named: any may have changed
    const told = [...(this.grown.size > 0 ? this.grown : this.runs.keys())];
    this.grown = new Set();
    try {
      const grown = told.filter((run) => this.runs.has(run));
      if (this.range) for (const run of grown) this.forget(run, true);
      else await this.readOn(grown, signal);
      await this.readMissing(signal, publish);
    } catch (error) {
      for (const run of told) this.grown.add(run);
      throw error;
    }
  }

  private async readMissing(signal: AbortSignal, publish: (set: CurveSet) => void): Promise<void> {
    for (;;) {
      const missing = this.missing();
      if (missing.length === 0 || this.curves.size > 0) publish(this.set(missing.length));
      if (missing.length === 0 || signal.aborted) return;
      const together = Math.max(1, Math.floor(kCurvesTogether / Math.max(1, this.query.names.length)));
      const answer = await this.read(missing.slice(0, together), this.range ?? {}, signal);
      if (answer.runs.length === 0) return;
      for (const { run } of answer.runs) this.forget(run);
      this.take(answer);
    }
  }

  private missing(): number[] {
    return [...this.wanted].filter((run) => !this.runs.has(run));
  }
  private set(missing: number): CurveSet {
    return { curves: new Map(this.curves), runs: new Map(this.runs), missing, range: this.range };
  }

  /** `shown`: what is known of it stays until it is read again. */
  private forget(run: number, shown = false): void {
    this.runs.delete(run);
    if (shown) return;
    for (const [key, curve] of this.curves) if (curve.run === run) this.curves.delete(key);
  }

  private take({ curves, runs }: CurvesResponse): void {
    for (const run of runs) this.runs.set(run.run, run);
    for (const curve of curves) this.curves.set(keyOf(curve.run, curve.name), heldOf(curve));
  }

  /** Reads what was appended to runs, those together that have come equally far. */
  private async readOn(grown: number[], signal: AbortSignal): Promise<void> {
    const of = (run: number): Held[] => [...this.curves.values()].filter((curve) => curve.run === run);
    const far = grown.map((run) => ({ run, next: Math.max(0, ...of(run).map(nextOf)) }));
    far.sort((a, b) => a.next - b.next);
    for (let first = 0; first < far.length; first += kTogether) {
      const runs = far.slice(first, first + kTogether).map(({ run }) => run);
      const curves = runs.flatMap(of);
      const last = Math.max(0, ...curves.map(nextOf)) - this.query.width;
      const from = bucketBegin(curves, last);
      const behind = curves.filter((curve) => nextOf(curve) < from); // evaluated once an epoch, say
      await this.append(runs, this.query.names, from, narrowest(curves), signal);
      if (behind.length === 0) continue;
      const names = [...new Set(behind.map(({ name }) => name))];
      const those = [...new Set(behind.map(({ run }) => run))].filter((run) => this.runs.has(run));
      if (those.length)
        await this.append(
          those,
          names,
          bucketBegin(behind, Math.min(...behind.map(nextOf))),
          narrowest(behind),
          signal,
        );
    }
  }

  /** `bucket`: the steps of the buckets that are known of them; 0: none are. */
  private async append(
    runs: number[],
    names: string[],
    from: number,
    bucket: number,
    signal: AbortSignal,
  ): Promise<void> {
    const answer = await this.read(runs, { from }, signal, names, bucket);
    const answered = new Set(answer.runs.map(({ run }) => run));
    const unclear = new Set(runs.filter((run) => !answered.has(run)));
    for (const run of answer.runs) this.runs.set(run.run, run);
    for (const fresh of answer.curves) {
      const held = this.curves.get(keyOf(fresh.run, fresh.name));
      if (held && nextOf(held) < from) continue; // it is read from further back
      const whole = held && appended(held, fresh, from, this.query.width);
      if (whole) this.curves.set(keyOf(fresh.run, fresh.name), whole);
      else unclear.add(fresh.run);
    }
    for (const run of unclear) this.forget(run, true); // it is read as a whole
  }

  private read(
    runs: number[],
    range: Partial<StepRange>,
    signal: AbortSignal,
    names = this.query.names,
    bucket = 0,
  ): Promise<CurvesResponse> {
    const { times, width } = this.query;
    const query = new URLSearchParams([
      ...runs.map((run) => ["run", String(run)]),
      ...names.map((name) => ["name", name]),
      ["width", String(width)],
      ...(bucket > 0 ? [["bucket", String(bucket)]] : []),
      ...(times ? [["times", "1"]] : []),
      ...(range.from ? [["from", String(range.from)]] : []),
      ...(range.to !== undefined && Number.isFinite(range.to) ? [["to", String(range.to)]] : []),
    ]);
    return get<CurvesResponse>(`/curves?${query}`, signal);
  }
}

/** Reads `wanted` (null: nothing yet), in `range` where there is one, and keeps it fresh by what is new. */
export function useCurves(
  wanted: WantedCurves | null,
  concerns: (change: Change) => boolean,
  range?: StepRange,
  isPast: (run: number) => boolean = () => false,
): Resource<CurveSet> {
  const [resource, setResource] = useState<Resource<CurveSet>>({});
  const reader = useRef<Reader | undefined>(undefined);
  const shown = useRef("");
  const past = useRef(isPast);
  past.current = isPast;
  const what = wanted && JSON.stringify([wanted.names, wanted.times, wanted.width]);
  const identity = wanted && JSON.stringify([what, range?.from, range?.to === Infinity ? "end" : range?.to]);
  const runs = wanted?.runs.join(" ") ?? "";
  useEffect(() => {
    // another range of the same curves: what is shown stays until it has been read
    if (what === null || shown.current !== what) setResource({});
    shown.current = what ?? "";
    reader.current = wanted ? new Reader(wanted, range) : undefined;
  }, [identity]);
  useEffect(() => {
    const present = reader.current;
    if (!wanted || !present) return;
    present.want(wanted.runs);
    return runOnChange(
      (change) => (change.sweep === "" || concerns(change)) && present.note(change, past.current),
      async (signal) => {
        try {
          await present.work(signal, (data) => !signal.aborted && setResource({ data }));
          return true;
        } catch (error) {
          if (signal.aborted) return false;
          setResource((old) => ({ ...old, error: asApiError(error) }));
          return false;
        }
      },
    );
  }, [identity, runs]);
  return resource;
}

/** The steps that lie in a stretch of the axis and are not known point by point, in whole buckets. */
export function rangeToRead(
  curves: { curve: Held; x: number[]; steps: number[] }[],
  zoom: { from: number; to: number } | undefined,
): StepRange | undefined {
  const coarse = curves.filter(({ curve }) => !isExact(curve));
  if (!zoom || coarse.length === 0) return undefined;
  const wide = widest(coarse.map(({ curve }) => curve));
  let from = Infinity;
  let to = -Infinity;
  let end = 0;
  for (const { x, steps } of coarse) {
    end = Math.max(end, steps.at(-1) ?? 0);
    const before = x.findLastIndex((place) => place < zoom.from);
    const behind = x.findIndex((place) => place > zoom.to);
    if (before === x.length - 1) continue;
    from = Math.min(from, before < 0 ? 0 : steps[before]!);
    to = Math.max(to, behind < 0 ? Infinity : steps[behind]!);
  }
  if (to < from) return undefined;
  const range = { from: Math.floor(from / wide) * wide, to: Math.ceil((to + 1) / wide) * wide - 1 };
  return Math.min(range.to, end) - range.from > 0.75 * end ? undefined : range;
}

/** Whether every curve of a run has gone beyond a step. */
export function isPast(set: CurveSet | undefined, run: number, step: number): boolean {
  const curves = [...(set?.curves.values() ?? [])].filter((curve) => curve.run === run);
  return curves.length > 0 && curves.every(({ parts }) => (parts.at(-1)?.points.steps.at(-1) ?? 0) > step);
}

/** Curves as a whole, finer in the range of `detail`. */
export function withDetails(
  overview: CurveSet | undefined,
  detail: CurveSet | undefined,
): CurveSet | undefined {
  if (!overview || !detail?.range) return overview;
  const curves = new Map(overview.curves);
  for (const [key, fine] of detail.curves) {
    const coarse = curves.get(key);
    if (coarse && !isExact(coarse)) curves.set(key, withDetail(coarse, fine, detail.range));
  }
  return { ...overview, curves };
}
