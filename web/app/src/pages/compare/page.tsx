// SPDX-License-Identifier: Apache-2.0
import { Loaded } from "../../components/notice";
import { firstOf } from "../../components/pager";
import { State } from "../../components/state";
import { plural, rowName, whole } from "../../format";
import type { ComparedSide, CompareResponse } from "../../generated/ablate";
import type { Page } from "../../page";
import { useResource } from "../../resource";
import { Link, navigate, rowPath, runPath, sweepPath, useAddress, withQuery } from "../../router";
import { Choice, SidesForm } from "./choice";
import { Curves, kMaxPoints } from "./curves";
import { MetricTable } from "./metrics";
import { ComparedProbes } from "./probes";
import { SweepRows } from "./rows";
import { Settings } from "./settings";
import { SweepCurves } from "./sweep_curves";

export const page: Page = {
  title: "Compare",
  under: "/sweeps",
  View: ComparePage,
};

const kTests = [
  ["", "from the sweep files"],
  ["welch", "Welch's t"],
  ["paired", "paired t"],
  ["permutation", "permutation"],
] as const;
const kRows = 50;

/** Two sweeps, rows or runs side by side: `?a=SWEEP/ROW&b=17`. */
function ComparePage() {
  const query = useAddress().searchParams;
  const a = query.get("a") ?? "";
  const b = query.get("b") ?? "";
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <Link href="/sweeps">Sweeps</Link>
      </nav>
      <h1 tabIndex={-1}>Compare</h1>
      <SidesForm a={a} b={b} />
      {a && b ? <Compared a={a} b={b} /> : <Choice chosen={a || b} side={a ? "b" : "a"} />}
    </>
  );
}

function Compared({ a, b }: { a: string; b: string }) {
  const query = useAddress().searchParams;
  const test = query.get("test") ?? "";
  const metric = query.get("metric") ?? "";
  const first = firstOf(query);
  const parameters = new URLSearchParams({ a, b, first: String(first), count: String(kRows) });
  // of two sweeps curves are read row by row, of the few that are drawn; the names tell that it is two
  const areSweeps = isSweep(a) && isSweep(b);
  if (!areSweeps) parameters.set("max_points", String(kMaxPoints));
  if (test) parameters.set("test", test);
  if (metric) parameters.set("metric", metric);
  const compared = useResource<CompareResponse>(`/compare?${parameters}`, () => true, `${a} ${b}`);
  return (
    <Loaded of={compared} what="The comparison" lines={8}>
      {(data) => (
        <>
          <div class="sides">
            <Side letter="A" side={data.a} />
            <Side letter="B" side={data.b} />
          </div>
          {data.notes.length > 0 && (
            <ul class="compare-notes">
              {data.notes.map((note) => (
                <li key={note}>{note}</li>
              ))}
            </ul>
          )}
          <div class="controls">
            <label>
              Test
              <select
                value={test}
                onChange={(event) => navigate(withQuery({ test: event.currentTarget.value || null }))}
              >
                {kTests.map(([value, name]) => (
                  <option key={value} value={value}>
                    {name}
                  </option>
                ))}
              </select>
            </label>
            <span class="muted">{data.legend}</span>
          </div>
          {data.a.kind === "sweep" ? (
            <>
              <SweepRows compared={data} first={first} size={kRows} />
              <SweepCurves compared={data} />
            </>
          ) : (
            <>
              <MetricTable metrics={data.metrics} only={metric} />
              {data.a.kind === "run" && data.b.kind === "run" && (
                <ComparedProbes key={`${data.a.run} ${data.b.run}`} a={data.a} b={data.b} />
              )}
              <Curves compared={data} />
            </>
          )}
          <Settings compared={data} />
        </>
      )}
    </Loaded>
  );
}

const isSweep = (name: string): boolean => !name.includes("/") && !/^\d+$/.test(name);

/** What a side is, with the way to it. */
function Side({ letter, side }: { letter: string; side: ComparedSide }) {
  const href =
    side.kind === "run"
      ? runPath(side.run)
      : side.kind === "row"
        ? rowPath(side.sweep, side.row)
        : sweepPath(side.sweep);
  return (
    <div class="panel side">
      <span class="side-letter">{letter}</span>
      <div class="side-text">
        <Link class="strong" href={href} title={side.name}>
          <span class="name">{side.kind === "run" ? `run ${side.run}` : side.name}</span>
        </Link>
        {side.kind !== "sweep" && side.row && (
          <span class="name" title={rowName(side.row, side.label)}>
            {side.kind === "run" && `${side.sweep} / `}
            {rowName(side.row, side.label)}
            {side.kind === "run" && `, seed ${side.seed}`}
          </span>
        )}
        <span class="muted num">
          {side.kind === "run" ? (
            <State state={side.state} />
          ) : (
            <>
              {side.kind === "sweep" && `${plural(side.rows, "row")}, `}
              {whole(side.completed)} of {plural(side.trials, "trial")} completed
            </>
          )}
        </span>
      </div>
    </div>
  );
}
