// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { Notice } from "../../components/notice";
import { ColumnHead, TablePanel } from "../../components/table_panel";
import { plain, withMinus } from "../../format";
import { Link, withQuery } from "../../router";
import type { Cell, ComparedMetric } from "../../generated/ablate";

/** The heads of what `MetricCells` fills for these metrics. */
export function MetricHeads({ of }: { of: ComparedMetric[] }) {
  const isCorrected = of.some(({ p, p_corrected }) => p !== p_corrected);
  return (
    <>
      <ColumnHead num>A</ColumnHead>
      <ColumnHead num>n</ColumnHead>
      <ColumnHead num>B</ColumnHead>
      <ColumnHead num>n</ColumnHead>
      <ColumnHead num>B − A</ColumnHead>
      <ColumnHead num>95 % interval</ColumnHead>
      <ColumnHead num>{isCorrected ? "corrected p" : "p"}</ColumnHead>
      <ColumnHead>Verdict</ColumnHead>
    </>
  );
}

/** A metric on both sides, with the test. */
export function MetricCells({ metric }: { metric: ComparedMetric }) {
  return (
    <>
      <Value cell={metric.a} />
      <Value cell={metric.b} />
      <td class="num">{withMinus(metric.difference_text) || "–"}</td>
      <td class="num">{withMinus(metric.interval_text) || "–"}</td>
      <td class="num">{pText(metric)}</td>
      <td class="verdict">{verdict(metric)}</td>
    </>
  );
}

function Value({ cell }: { cell: Cell }) {
  return (
    <>
      <td class="num" title={cell.missing}>
        <span class={cell.missing ? "muted" : "value"}>{cell.text}</span>
      </td>
      <td class="num muted">{cell.n}</td>
    </>
  );
}

function pText(metric: ComparedMetric): string {
  if (metric.p_corrected === undefined) return "–";
  const p = Number(metric.p_corrected);
  return p < 1e-4 ? "< 0.0001" : p.toPrecision(2);
}

/** As words and a sign, never as colour alone. */
function verdict(metric: ComparedMetric): ComponentChildren {
  switch (metric.verdict) {
    case "VERDICT_BETTER":
      return <strong class="good">▲ B is better</strong>;
    case "VERDICT_WORSE":
      return <strong class="bad">▼ A is better</strong>;
    case "VERDICT_DIFFERENT":
      return <strong>≠ different</strong>;
    default: {
      if (metric.why.includes("--metric"))
        // the server names the command's flag; here it is a link
        return (
          <Link
            href={withQuery({ metric: metric.metric })}
            title="Not a column of the table: it is tested only on its own"
          >
            test it
          </Link>
        );
      const why = [
        metric.why,
        metric.a.missing && `A: ${metric.a.missing}`,
        metric.b.missing && `B: ${metric.b.missing}`,
      ];
      return (
        <span class="muted" title={why.filter(Boolean).join("; ")}>
          {metric.why || (metric.family > 0 ? "not significant" : "–")}
        </span>
      );
    }
  }
}

export function metricName(metric: ComparedMetric): string {
  return `${metric.take} ${metric.metric}${metric.unit ? ` (${metric.unit})` : ""}`;
}

/** All metrics of two rows or runs, those of the table's columns first. */
export function MetricTable({ metrics, only }: { metrics: ComparedMetric[]; only: string }) {
  if (metrics.length === 0) return <Notice kind="empty" title="Neither side reported a metric." />;
  return (
    <section aria-labelledby="metrics">
      <h2 id="metrics">
        {only ? `Metric ${only}` : "Metrics"}
        {only && (
          <Link class="h2-link" href={withQuery({ metric: null })}>
            All metrics
          </Link>
        )}
      </h2>
      <TablePanel
        caption="Metrics of A and B"
        tall
        head={
          <>
            <ColumnHead>Metric</ColumnHead>
            <MetricHeads of={metrics} />
            <ColumnHead num>Effect g</ColumnHead>
          </>
        }
      >
        {metrics.map((metric) => (
          <tr key={`${metric.take} ${metric.metric} ${metric.column}`}>
            <th scope="row">
              <span class="name" title={metricName(metric)}>
                {metricName(metric)}
              </span>
            </th>
            <MetricCells metric={metric} />
            <td class="num">{plain(metric.g)}</td>
          </tr>
        ))}
      </TablePanel>
    </section>
  );
}
