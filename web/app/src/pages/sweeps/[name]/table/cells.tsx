// SPDX-License-Identifier: Apache-2.0
import { State } from "../../../../components/state";
import { decimals, plain, plural, rounded, signed, withMinus } from "../../../../format";
import type { Cell, Column, Comparison, Real, Table, TableRow } from "../../../../generated/ablate";
import { Link, withQuery } from "../../../../router";
import { inUnit, isSampled, numeric, partsOf, type Parts } from "./columns";

interface CellsProps {
  column: Column;
  cell: Cell;
  row: TableRow;
  baseline: Cell | undefined;
  /** It is the baseline's own cell, of a line that is not the baseline's as a whole. */
  isMarked: boolean;
  parts: Parts;
  table: Table;
  /** Where the part of the page begins that has this row's curves and trials; undefined: where it does now. */
  first: string | null | undefined;
}

/** What a row has under one column: its value, and each part of it that is shown. */
export function Cells({ column, cell, row, baseline, isMarked, parts, table, first }: CellsProps) {
  if (column.kind === "KIND_SETTING")
    return (
      <td class="group" title={cell.missing}>
        <code>{cell.text || "–"}</code>
      </td>
    );
  if (column.kind === "KIND_PRINTED")
    return (
      <td class="num group paper">
        <Printed cell={cell} />
      </td>
    );
  return (
    <>
      <td class={`num group ${place(cell)} ${isMarked ? "baseline" : ""}`}>
        {isMarked && <span class="tag">baseline </span>}
        <Value column={column} cell={cell} row={row} first={first} sd={parts.has("sd")} />
      </td>
      {partsOf(column, table, parts).map((part) => (
        <td
          key={part}
          class={`num ${{ n: "muted", delta: "", paper: "paper", interval: "muted", sd: "" }[part]}`}
        >
          {part === "n" && <Count cell={cell} />}
          {part === "delta" && (
            <Difference
              column={column}
              cell={cell}
              baseline={baseline}
              corrected={table.compare.correction !== "none"}
            />
          )}
          {part === "paper" && <Printed cell={cell} />}
          {part === "interval" && <Bounds column={column} cell={cell} />}
        </td>
      ))}
    </>
  );
}

function Count({ cell }: { cell: Cell }) {
  return (
    <>
      {cell.of === 0 ? "" : cell.n < cell.of ? `${cell.n}/${cell.of}` : cell.n}
      {cell.n > 0 && cell.unfilled > 0 && (
        <span class="warn cell-missing" title={cell.missing}>
          {cell.unfilled} missing
          <span class="sr-only">: {cell.missing}</span>
        </span>
      )}
    </>
  );
}

/** The interval of the mean, in as many digits as the mean has. */
function Bounds({ column, cell }: { column: Column; cell: Cell }) {
  const { interval, why_no_interval: why = "" } = cell.statistics ?? {};
  if (!interval) return <span title={why}>–</span>;
  const digits = decimals(cell.text.split(" ± ")[0]!);
  const text = (end: Real): string => {
    const value = inUnit(Number(end), column);
    return digits === undefined || !Number.isFinite(value) ? plain(value) : rounded(value, digits);
  };
  return (
    <>
      {text(interval.low)} to {text(interval.high)}
    </>
  );
}

/** The paper's value as it prints it: bold, underlined, or in doubt. */
function Printed({ cell }: { cell: Cell }) {
  const text = cell.paper || "–";
  if (cell.paper_mark === "bold") return <b>{text}</b>;
  if (cell.paper_mark === "underline") return <u>{text}</u>;
  if (cell.paper_mark === "doubtful")
    return (
      <>
        {text} <abbr title={`in doubt: ${cell.paper_why}`}>(?)</abbr>
      </>
    );
  return <>{text}</>;
}

function place({ comparison }: Cell): string {
  return comparison?.best ? "best" : comparison?.second ? "second" : "";
}

/** "79.79 ± 0.12" with the signs of all rows below each other; a link to the cell's section. */
function Value({
  column,
  cell,
  row,
  first,
  sd: withSd,
}: Pick<CellsProps, "column" | "cell" | "row" | "first"> & { sd: boolean }) {
  const metric = isSampled(column);
  if (cell.mean === undefined && cell.diverged.length === 0)
    return <Missing cell={cell} row={row} metric={metric} />;
  const [mean, sd] = cell.text.split(" ± ");
  if (!metric) return <>{mean}</>;
  const href = withQuery(
    { row: cell.row || row.id, column: column.of || column.name, ...(first !== undefined && { first }) },
    "#cell",
  );
  return (
    <Link
      class="value"
      href={href}
      title={[...cell.runs.map(seedText), ...(cell.statistics?.lines ?? []), cell.comparison?.best_why]
        .filter(Boolean)
        .join("\n")}
    >
      <span class={cell.diverged.length > 0 ? "bad" : ""}>{mean}</span>
      {withSd && <span class="sd">{sd ? ` ± ${sd}` : ""}</span>}
      {cell.before_mend > 0 && <abbr title="made before a correction of the trainer">†</abbr>}
      {cell.imported > 0 && <abbr title="imported, not measured here">¶</abbr>}
      {cell.packed > 0 && <abbr title="of runs that shared their GPU with others">‡</abbr>}
      {(cell.older ?? 0) > 0 && (
        <abbr
          title={`of ${cell.older_version ? `version ${cell.older_version}` : "an older version"} of the command`}
        >
          §
        </abbr>
      )}
    </Link>
  );
}

function seedText({ seed, value, not_finite }: Cell["runs"][number]): string {
  return `seed ${seed}: ${value}${not_finite > 0 ? `, ${plural(not_finite, "point")} not finite` : ""}`;
}

/** An empty cell says why: the state of the row's trials, and the server's reason on demand. */
function Missing({ cell, row, metric }: { cell: Cell; row: TableRow; metric: boolean }) {
  const trials = row.trials;
  const state = !metric
    ? undefined
    : trials.running + trials.leased > 0
      ? "running"
      : trials.queued > 0
        ? "queued"
        : trials.failed > 0
          ? "failed"
          : trials.held > 0
            ? "held"
            : trials.cancelled > 0
              ? "cancelled"
              : undefined;
  return (
    <span class="missing" title={cell.missing}>
      {cell.unfilled > 0 ? cell.text || "missing" : state ? <State state={state} /> : "–"}
      <span class="sr-only">{cell.missing}</span>
    </span>
  );
}

const kVerdicts: Record<Comparison["verdict"], { look: string; words: string }> = {
  VERDICT_UNSPECIFIED: { look: "muted", words: "" },
  VERDICT_NOT_TOLD_APART: { look: "muted", words: "no significant difference from the baseline" },
  VERDICT_BETTER: { look: "good", words: "better than the baseline" },
  VERDICT_WORSE: { look: "bad", words: "worse than the baseline" },
  VERDICT_DIFFERENT: { look: "", words: "differs from the baseline" },
};

/** "corrected p = 0.0123": of the test against the baseline. */
function probability(cell: Cell, corrected: boolean): string {
  const p = typeof cell.p_corrected === "number" ? cell.p_corrected : cell.p;
  if (typeof p !== "number") return "";
  return `${corrected ? "corrected p" : "p"} ${p < 1e-4 ? "< 0.0001" : `= ${p.toFixed(p < 0.1 ? 4 : 2)}`}`;
}

/** The difference of the means; its colour is the server's verdict, the reason is on demand. */
function Difference({
  column,
  cell,
  baseline,
  corrected,
}: Pick<CellsProps, "column" | "cell" | "baseline"> & { corrected: boolean }) {
  const { verdict = "VERDICT_UNSPECIFIED", why = "" } = cell.comparison ?? {};
  const text = differenceText(column, cell, baseline);
  if (text === undefined)
    return (
      <span class="muted" title={why}>
        –
      </span>
    );
  const { look, words } = kVerdicts[verdict];
  const p = probability(cell, corrected);
  return (
    <span
      class={text.startsWith("±") ? "muted" : look}
      title={[words, p, ...(cell.statistics?.lines.slice(1) ?? [why])].filter(Boolean).join("\n")}
    >
      {text}
      {words && <span class="sr-only">, {[words, p].filter(Boolean).join(", ")}</span>}
    </span>
  );
}

/** In the more digits of both. Where the baseline stands under another column the server has subtracted it. */
function differenceText(column: Column, cell: Cell, baseline: Cell | undefined): string | undefined {
  if (cell.difference) return withMinus(cell.difference);
  const [value, reference] = [numeric(cell), numeric(baseline)];
  if (value === undefined || reference === undefined) return undefined;
  const digits = [cell, baseline].map((one) => decimals(one!.text.split(" ± ")[0]!));
  return signed(
    inUnit(value - reference, column),
    digits.includes(undefined) ? undefined : Math.max(...digits.map(Number)),
  );
}
