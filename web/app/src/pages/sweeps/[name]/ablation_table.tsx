// SPDX-License-Identifier: Apache-2.0
import { sorted, SortHead, useOrder, type Order } from "../../../components/sort";
import { State, stateWord } from "../../../components/state";
import { Swatch } from "../../../components/swatch";
import { decimals, plural, sameName, signed } from "../../../format";
import type { Cell, Column, Comparison, Table, TableRow, TrialSummary } from "../../../generated/ablate";
import type { Look } from "../../../palette";
import { Link, runPath, withQuery } from "../../../router";

interface Props {
  table: Table;
  trials: TrialSummary[];
  looks: Map<string, Look>;
  selected: string | null;
}

const kUnitFactor: Record<string, number> = { M: 1e6, G: 1e9 };

/** Rows by columns: mean ± s.d. over the seeds, how many there are, the difference to the baseline, and the paper's value beside. */
export function AblationTable({ table, trials, looks, selected }: Props) {
  const order = useOrder("sort");
  const keys: Record<string, (row: TableRow) => number | string | undefined> = { row: (row) => row.id };
  table.columns.forEach((column, i) => {
    keys[column.name] = (row) =>
      column.kind === "KIND_SETTING" ? row.cells[i]?.text : numeric(row.cells[i]);
    keys[`${column.name}.paper`] = (row) => parsed(row.cells[i]?.paper);
  });
  const baseline = table.rows.find((row) => row.id === table.baseline);
  return (
    <div class="panel scroll tall">
      <table class="ablation wide">
        <caption>
          <p class="caption-text">
            Mean ± standard deviation over the seeds, n of them.{" "}
            {baseline && (
              <>
                Δ is the difference to the baseline,{" "}
                <strong class="name" title={baseline.label}>
                  {baseline.label}
                </strong>
                : green or red where it is more than the seeds' spread explains (Welch's t-test, p &lt; 0.05),
                grey otherwise.{" "}
              </>
            )}
            The best of a column is in bold where it differs so from every other row.
          </p>
        </caption>
        <Head table={table} order={order} />
        <tbody>
          {sorted(table.rows, order, keys).map((row) => (
            <tr
              key={row.id}
              class={`${row === baseline ? "baseline" : ""} ${row.id === selected ? "selected" : ""}`}
            >
              <th scope="row">
                <Link class="row-name" href={withQuery({ row: row.id === selected ? null : row.id })}>
                  <Swatch look={looks.get(row.id)!} />
                  {!sameName(row.id, row.label) && <span class="row-id name">{row.id}</span>}
                  <span class="name" title={row.label}>
                    {row.label}
                  </span>
                  {row === baseline && <span class="tag">baseline</span>}
                </Link>
              </th>
              {table.columns.map((column, i) => (
                <Cells
                  key={column.name}
                  column={column}
                  cell={row.cells[i]!}
                  row={row}
                  baseline={baseline && baseline !== row ? baseline.cells[i] : undefined}
                  hasBaseline={!!baseline}
                />
              ))}
              <td>
                <Runs trials={trials.filter((trial) => trial.row === row.id)} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {table.notes.length > 0 && (
        <ul class="notes">
          {table.notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Head({ table, order }: { table: Table; order: Order }) {
  const paper = table.paper_heading || "paper";
  return (
    <thead>
      <tr>
        <SortHead order={order} column="row" rowSpan={2}>
          Row
        </SortHead>
        {table.columns.map((column) => {
          const span = spanOf(column, table);
          const title = headingOf(column);
          return span === 1 ? (
            <SortHead
              key={column.name}
              order={order}
              column={column.name}
              rowSpan={2}
              class="group"
              title={`${title}\n${column.source}`}
              numeric={column.kind !== "KIND_SETTING"}
            >
              {title}
            </SortHead>
          ) : (
            <th
              key={column.name}
              scope="colgroup"
              colSpan={span}
              class="group group-head"
              title={`${title}\n${column.source}`}
            >
              {title}
            </th>
          );
        })}
        <th scope="col" rowSpan={2} class="group">
          Runs by seed
        </th>
      </tr>
      <tr>
        {table.columns.map((column) => {
          if (spanOf(column, table) === 1) return null;
          const metric = column.kind === "KIND_METRIC";
          return (
            <>
              <SortHead
                order={order}
                column={column.name}
                numeric
                class="group"
                highFirst={column.better === "higher"}
              >
                <span class="sr-only">{column.heading}, </span>
                {metric ? "mean ± s.d." : "here"}
              </SortHead>
              {metric && (
                <th scope="col" class="num">
                  n
                </th>
              )}
              {metric && table.baseline && (
                <th scope="col" class="num">
                  Δ
                </th>
              )}
              {column.has_paper && (
                <SortHead
                  order={order}
                  column={`${column.name}.paper`}
                  numeric
                  class="paper"
                  highFirst={column.better === "higher"}
                >
                  {paper}
                </SortHead>
              )}
            </>
          );
        })}
      </tr>
    </thead>
  );
}

interface CellsProps {
  column: Column;
  cell: Cell;
  row: TableRow;
  baseline: Cell | undefined;
  hasBaseline: boolean;
}

function Cells({ column, cell, row, baseline, hasBaseline }: CellsProps) {
  if (column.kind === "KIND_SETTING")
    return (
      <td class="group" title={cell.missing}>
        <code>{cell.text || "–"}</code>
      </td>
    );
  const metric = column.kind === "KIND_METRIC";
  return (
    <>
      <td class={`num group ${cell.comparison?.best ? "best" : ""}`}>
        <Value cell={cell} row={row} metric={metric} />
      </td>
      {metric && (
        <td class="num muted">
          {cell.n < cell.of ? `${cell.n}/${cell.of}` : cell.n}
          {cell.n > 0 && cell.unfilled > 0 && (
            <span class="warn cell-missing" title={cell.missing}>
              {cell.unfilled} missing
              <span class="sr-only">: {cell.missing}</span>
            </span>
          )}
        </td>
      )}
      {metric && hasBaseline && (
        <td class="num">
          <Difference column={column} cell={cell} baseline={baseline} />
        </td>
      )}
      {column.has_paper && <td class="num paper">{cell.paper || "–"}</td>}
    </>
  );
}

/** "79.79 ± 0.12" with the signs of all rows below each other; a link to the runs that it is made of. */
function Value({ cell, row, metric }: { cell: Cell; row: TableRow; metric: boolean }) {
  if (cell.mean === undefined) return <Missing cell={cell} row={row} metric={metric} />;
  const [mean, sd] = cell.text.split(" ± ");
  if (!metric) return <>{mean}</>;
  const [only] = cell.runs;
  const href = cell.runs.length === 1 && only ? runPath(only.run) : withQuery({ row: row.id }, "#trials");
  return (
    <Link
      class="value"
      href={href}
      title={[...cell.runs.map(seedText), cell.comparison?.best_why].filter(Boolean).join("\n")}
    >
      <span>{mean}</span>
      <span class="sd">{sd ? ` ± ${sd}` : ""}</span>
      {cell.before_mend > 0 && <abbr title="made before a correction of the trainer">†</abbr>}
      {cell.packed > 0 && <abbr title="of runs that shared their GPU with others">‡</abbr>}
    </Link>
  );
}

function seedText({ seed, value, not_finite }: Cell["runs"][number]): string {
  return `seed ${seed}: ${value}${not_finite > 0 ? `, it diverged: ${plural(not_finite, "point")} not finite` : ""}`;
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
      {cell.unfilled > 0 ? "missing" : state ? <State state={state} /> : "–"}
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

/** The difference of the means; its colour is the server's verdict, the reason is on demand. */
function Difference({ column, cell, baseline }: { column: Column; cell: Cell; baseline: Cell | undefined }) {
  const [value, reference] = [numeric(cell), numeric(baseline)];
  const { verdict = "VERDICT_UNSPECIFIED", why = "" } = cell.comparison ?? {};
  if (value === undefined || reference === undefined)
    return (
      <span class="muted" title={why}>
        –
      </span>
    );
  const { look, words } = kVerdicts[verdict];
  const digits = [cell, baseline].map((one) => decimals(one!.text.split(" ± ")[0]!));
  const text = signed(
    (value - reference) / (kUnitFactor[column.unit] ?? 1),
    digits.includes(undefined) ? undefined : Math.max(...digits.map(Number)),
  );
  return (
    <span class={text.startsWith("±") ? "muted" : look} title={`${words}\n${why}`}>
      {text}
    </span>
  );
}

/** A link for each seed's newest run, with its state. */
function Runs({ trials }: { trials: TrialSummary[] }) {
  return (
    <ul class="runs">
      {trials.map((trial) => {
        const word = stateWord(trial.state);
        const percent = trial.total_steps ? Math.floor((100 * trial.step) / trial.total_steps) : 0;
        const text = (
          <>
            <State state={trial.state} iconOnly />
            {trial.seed}
            {word === "running" && <span class="muted">{percent} %</span>}
          </>
        );
        const title = `seed ${trial.seed}: ${word}${trial.reason ? `, ${trial.reason}` : ""}`;
        return (
          <li key={trial.id}>
            {trial.run ? (
              <Link
                class="run"
                href={runPath(trial.run)}
                title={title}
                aria-label={`run ${trial.run}, ${title}`}
              >
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

function spanOf(column: Column, table: Table): number {
  if (column.kind === "KIND_SETTING") return 1;
  const metric = column.kind === "KIND_METRIC";
  return 1 + (metric ? 1 : 0) + (metric && table.baseline ? 1 : 0) + (column.has_paper ? 1 : 0);
}

function headingOf(column: Column): string {
  return column.unit ? `${column.heading} (${column.unit})` : column.heading;
}

function numeric(cell: Cell | undefined): number | undefined {
  return typeof cell?.mean === "number" ? cell.mean : undefined;
}

function parsed(text: string | undefined): number | undefined {
  const number = Number.parseFloat(text ?? "");
  return Number.isNaN(number) ? undefined : number;
}
