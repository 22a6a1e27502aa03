// SPDX-License-Identifier: Apache-2.0
import { State, stateWord } from "../../../../components/state";
import type { TableRow, TrialSummary } from "../../../../generated/ablate";
import { Link, runPath } from "../../../../router";

/** A link for each seed's newest run, with its state. */
export function Runs({ trials }: { trials: TrialSummary[] }) {
  return (
    <ul class="runs">
      {trials.map((trial) => {
        const word = stateWord(trial.state);
        const percent = trial.total_steps ? Math.floor((100 * trial.step) / trial.total_steps) : 0;
        const text = (
          <>
            <State state={trial.state} iconOnly />
            {trial.run > 0 && <span class="sr-only">run {trial.run}, seed </span>}
            {trial.seed}
            {word === "running" && <span class="muted">{percent} %</span>}
          </>
        );
        const title = `seed ${trial.seed}: ${word}${trial.reason ? `, ${trial.reason}` : ""}`;
        return (
          <li key={trial.id}>
            {trial.run ? (
              <Link class="run" href={runPath(trial.run)} title={title}>
                {text}
              </Link>
            ) : (
              <span class="run" title={title}>
                {text}
              </span>
            )}
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
