// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
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
  /** Of a pivoted table: its long form has more rows than `trials` are of. */
  partial?: boolean;
}

const kUnitFactor: Record<string, number> = { M: 1e6, G: 1e9 };

/** Rows by columns: mean ± s.d. over the seeds, how many there are, the difference to the baseline, and the paper's value beside. */
export function AblationTable({ table, trials, looks, selected, partial }: Props) {
  const order = useOrder("sort");
  const keys: Record<string, (row: TableRow) => number | string | undefined> = { row: (row) => row.id };
  table.columns.forEach((column, i) => {
    keys[column.name] = (row) =>
      column.kind === "KIND_SETTING" ? row.cells[i]?.text : numeric(row.cells[i]);
    keys[`${column.name}.paper`] = (row) => parsed(row.cells[i]?.paper);
  });
  const baseline = table.rows.find((row) => row.id === table.baseline);
  const byId = new Map(table.rows.map((row) => [row.id, row]));
  /** What a row is compared with: its group's, or the table's. */
  const baselineOf = (row: TableRow) =>
    byId.get(row.baseline) ?? (row.baseline || table.pivot ? undefined : baseline);
  const rows = sorted(table.rows, order, keys);
  return (
    <div class="panel scroll tall">
      <table class="ablation wide">
        <caption>
          <p class="caption-text">
            Mean ± standard deviation over the seeds, n of them.{" "}
            {compares(table) && (
              <>
                Δ is the difference to the baseline
                {baseline && (
                  <>
                    ,{" "}
                    <strong class="name" title={baseline.label}>
                      {baseline.label}
                    </strong>
                  </>
                )}
                {!baseline && " of the group"}, grey where it is no more than the seeds' spread explains (
                {table.compare.legend}).{" "}
              </>
            )}
            In bold the best of a column and what is not told from it, underlined the second.
          </p>
        </caption>
        <Head table={table} order={order} runs={!partial} />
        <tbody>
          {rows.map((row, at) => (
            <>
              {order.column === null && row.group !== (rows[at - 1]?.group ?? "") && (
                <tr key={`group ${row.group}`} class="row-group">
                  <th scope="rowgroup" colSpan={100}>
                    {row.group}
                  </th>
                </tr>
              )}
              <tr
                key={row.id}
                class={`${row === baselineOf(row) ? "baseline" : ""} ${row.id === selected ? "selected" : ""}`}
              >
                <th scope="row">
                  <RowName
                    table={table}
                    href={withQuery({ row: row.id === selected ? null : row.id, column: null })}
                  >
                    <Swatch look={looks.get(row.id)!} />
                    {!sameName(row.id, row.label) && <span class="row-id name">{row.id}</span>}
                    <span class="name" title={row.label}>
                      {row.label}
                    </span>
                    {row === baselineOf(row) && <span class="tag">baseline</span>}
                    {row.not_trained && (
                      <span class="tag" title={row.not_trained_why}>
                        not trained
                      </span>
                    )}
                  </RowName>
                </th>
                {table.columns.map((column, i) => (
                  <Cells
                    key={column.name}
                    column={column}
                    cell={row.cells[i]!}
                    row={row}
                    baseline={baselineOf(row) !== row ? baselineOf(row)?.cells[i] : undefined}
                    hasBaseline={compares(table)}
                  />
                ))}
                {!partial && (
                  <td>
                    <Runs trials={trials.filter((trial) => rowsOf(row).has(trial.row))} />
                  </td>
                )}
              </tr>
            </>
          ))}
        </tbody>
      </table>
      <Analyses table={table} />
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

/** How columns agree with the paper's, and what the factors of a sweep explain of them. */
function Analyses({ table }: { table: Table }) {
  const number = (value: Cell["mean"], digits: number) =>
    typeof value === "number" ? value.toFixed(digits) : "–";
  const headings = new Map(table.columns.map((column) => [column.name, headingOf(column)]));
  return (
    <>
      {table.paper_agreement.length > 0 && (
        <ul class="notes">
          {table.paper_agreement.map((said) => (
            <li key={said.column} title={said.why}>
              {headings.get(said.column)}: agreement with the paper over {said.rows} rows: Kendall's τ
              <sub>b</sub> {number(said.tau, 2)}
              {said.tau_interval &&
                ` (95 % interval ${number(said.tau_interval.low, 2)} to ${number(said.tau_interval.high, 2)})`}
              {said.signs > 0 &&
                `; ${said.same_signs} of ${said.signs} differences to the baseline have the paper's sign`}
            </li>
          ))}
        </ul>
      )}
      {table.factor_analyses
        .filter((said) => said.effects.length > 0)
        .map((said) => (
          <details key={said.column}>
            <summary>{headings.get(said.column)}: analysis of variance</summary>
            <table>
              <thead>
                <tr>
                  <th scope="col">Factor</th>
                  {["df", "F", "p", "η²", "ω²"].map((head) => (
                    <th key={head} scope="col" class="num">
                      {head}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {[...said.effects]
                  .sort((a, b) => Number(b.eta_squared) - Number(a.eta_squared))
                  .map((effect) => (
                    <tr key={effect.factors.join()}>
                      <th scope="row">{effect.factors.join(" × ")}</th>
                      <td class="num">{effect.df}</td>
                      <td class="num">{number(effect.f, 2)}</td>
                      <td class="num">{number(effect.p, 4)}</td>
                      <td class="num">{number(effect.eta_squared, 3)}</td>
                      <td class="num">{number(effect.omega_squared, 3)}</td>
                    </tr>
                  ))}
              </tbody>
            </table>
            {said.why && <p class="muted">{said.why}</p>}
          </details>
        ))}
    </>
  );
}

/** A line of a pivoted table is no row, and leads to none: its cells do. */
function RowName({ table, href, children }: { table: Table; href: string; children: ComponentChildren }) {
  if (table.pivoted) return <span class="row-name">{children}</span>;
  return (
    <Link class="row-name" href={href}>
      {children}
    </Link>
  );
}

/** The rows that a line is made of: itself, where the table is not pivoted. */
function rowsOf(line: TableRow): Set<string> {
  const rows = line.cells.map((cell) => cell.row).filter((row) => row !== "");
  return new Set(rows.length > 0 && line.line === "" ? [line.id, ...rows] : [line.id]);
}

function Head({ table, order, runs }: { table: Table; order: Order; runs: boolean }) {
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
        {runs && (
          <th scope="col" rowSpan={2} class="group">
            Runs by seed
          </th>
        )}
      </tr>
      <tr>
        {table.columns.map((column) => {
          if (spanOf(column, table) === 1) return null;
          const metric = isSampled(column);
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
              {metric && compares(table) && (
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
  if (column.kind === "KIND_PRINTED")
    return (
      <td class="num group paper">
        <Printed cell={cell} />
      </td>
    );
  const metric = isSampled(column);
  return (
    <>
      <td class={`num group ${place(cell)}`}>
        <Value column={column} cell={cell} row={row} metric={metric} />
      </td>
      {metric && (
        <td class="num muted">
          {cell.of === 0 ? "" : cell.n < cell.of ? `${cell.n}/${cell.of}` : cell.n}
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
      {column.has_paper && (
        <td class="num paper">
          <Printed cell={cell} />
        </td>
      )}
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

/** "79.79 ± 0.12" with the signs of all rows below each other; a link to what is said of the cell, its runs above all. */
function Value({
  column,
  cell,
  row,
  metric,
}: Pick<CellsProps, "column" | "cell" | "row"> & { metric: boolean }) {
  if (cell.mean === undefined && cell.diverged.length === 0)
    return <Missing cell={cell} row={row} metric={metric} />;
  const [mean, sd] = cell.text.split(" ± ");
  if (!metric) return <>{mean}</>;
  const href = withQuery({ row: cell.row || row.id, column: column.of || column.name }, "#cell");
  return (
    <Link
      class="value"
      href={href}
      title={[...cell.runs.map(seedText), ...(cell.statistics?.lines ?? []), cell.comparison?.best_why]
        .filter(Boolean)
        .join("\n")}
    >
      <span class={cell.diverged.length > 0 ? "bad" : ""}>{mean}</span>
      <span class="sd">{sd ? ` ± ${sd}` : ""}</span>
      {cell.before_mend > 0 && <abbr title="made before a correction of the trainer">†</abbr>}
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
  return `seed ${seed}: ${value}${not_finite > 0 ? `, of the others: ${plural(not_finite, "point")} not finite` : ""}`;
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
    <span
      class={text.startsWith("±") ? "muted" : look}
      title={[words, ...(cell.statistics?.lines.slice(1) ?? [why])].join("\n")}
    >
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

/** Whether rows are compared with a baseline, of the table or of their groups. */
function compares(table: Table): boolean {
  return table.baseline !== "" || Object.keys(table.baselines).length > 0;
}

function spanOf(column: Column, table: Table): number {
  if (column.kind === "KIND_SETTING") return 1;
  if (column.kind === "KIND_PRINTED") return 1;
  const metric = isSampled(column);
  return 1 + (metric ? 1 : 0) + (metric && compares(table) ? 1 : 0) + (column.has_paper ? 1 : 0);
}

function headingOf(column: Column): string {
  const heading = column.unit ? `${column.heading} (${column.unit})` : column.heading;
  return column.level ? `${column.level}: ${heading}` : heading;
}

/** Whether its cells have a value for each seed. */
function isSampled(column: Column): boolean {
  return column.kind === "KIND_METRIC" || column.per_seed;
}

function numeric(cell: Cell | undefined): number | undefined {
  return typeof cell?.mean === "number" ? cell.mean : undefined;
}

function parsed(text: string | undefined): number | undefined {
  const number = Number.parseFloat(text ?? "");
  return Number.isNaN(number) ? undefined : number;
}
