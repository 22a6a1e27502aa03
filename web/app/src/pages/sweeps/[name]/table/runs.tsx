// SPDX-License-Identifier: Apache-2.0
import { Fragment } from "preact";
import { StateIcon, stateWord } from "../../../../components/state";
import type { TableRow, TrialSummary } from "../../../../generated/ablate";
import { Link, runPath, withQuery } from "../../../../router";

interface OfRow {
  row: string;
  /** Where the part of the page begins that has its trials; undefined: where it does now. */
  first: string | null | undefined;
  trials: TrialSummary[];
}

/** A link for each seed's newest run, with its state. `levels`: of the rows of a pivoted line, which stand before their runs. */
export function Runs({ trials, levels }: { trials: TrialSummary[]; levels: ReadonlyMap<string, string> }) {
  return (
    <ul class="runs">
      {trials.map((trial, i) => {
        const level = trial.row !== trials[i - 1]?.row && levels.get(trial.row);
        const word = stateWord(trial.state);
        const title = `seed ${trial.seed}: ${word}${trial.reason ? `, ${trial.reason}` : ""}`;
        const percent = trial.total_steps ? Math.floor((100 * trial.step) / trial.total_steps) : 0;
        const text = word === "running" ? `${trial.seed}, ${percent} %` : trial.seed;
        return (
          <Fragment key={`${trial.row} ${trial.id}`}>
            {level && <li class="run-level">{level}</li>}
            <li>
              {trial.run ? (
                <Link
                  class="run"
                  href={runPath(trial.run)}
                  title={title}
                  aria-label={`run ${trial.run}, seed ${text}: ${word}`}
                >
                  <StateIcon state={trial.state} />
                  {text}
                </Link>
              ) : (
                <span class="run" title={title}>
                  <StateIcon state={trial.state} />
                  {text}
                  <span class="sr-only">: {word}</span>
                </span>
              )}
            </li>
          </Fragment>
        );
      })}
    </ul>
  );
}

/** How many of a row's trials are in each state, for a table of very many rows; each leads to them below the table. */
export function RunCounts({ row, first, trials }: OfRow) {
  const states = new Map<string, string[]>();
  for (const trial of trials) states.set(trial.state, [...(states.get(trial.state) ?? []), trial.seed]);
  return (
    <ul class="runs">
      {[...states].map(([state, seeds]) => {
        const word = stateWord(state);
        const shown = { row, column: null, state: word, ...(first !== undefined && { first }) };
        return (
          <li key={state}>
            <Link
              class="run"
              href={withQuery(shown, "#trials")}
              title={`${word}: seed ${seeds.join(", ")}`}
              aria-label={`${seeds.length} ${word} of ${row}`}
            >
              <StateIcon state={state} />
              {seeds.length}
            </Link>
          </li>
        );
      })}
    </ul>
  );
}

/** The rows that a line is made of: itself, where the table is not pivoted. */
export function rowsOf(line: TableRow): Set<string> {
  const rows = line.cells.map((cell) => cell.row).filter((row) => row !== "");
  return new Set(rows.length > 0 && line.line === "" ? [line.id, ...rows] : [line.id]);
}
