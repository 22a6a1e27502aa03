// SPDX-License-Identifier: Apache-2.0
import { FailureGroups } from "../../../../components/failures";
import { Loaded, Notice } from "../../../../components/notice";
import { ColumnHead, TablePanel } from "../../../../components/table_panel";
import { plural, whole } from "../../../../format";
import type { FailureLevel, FailuresResponse } from "../../../../generated/ablate";
import type { Page } from "../../../../page";
import { useResource } from "../../../../resource";
import { Link, sweepPath } from "../../../../router";

export const page: Page = {
  title: (name) => `Failures of ${name}`,
  View: ({ id }) => <FailuresPage name={id} />,
};

/** The failed trials of a sweep in groups, and what their rows have in common. */
function FailuresPage({ name }: { name: string }) {
  const failures = useResource<FailuresResponse>(
    `/failures?sweep=${encodeURIComponent(name)}`,
    (change) => change.sweep === name,
  );
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <Link href="/sweeps">Sweeps</Link>
        <span>
          <Link href={sweepPath(name)}>{name}</Link>
        </span>
      </nav>
      <h1 tabIndex={-1}>Failures</h1>
      <Loaded of={failures} what="Failures">
        {(data) =>
          data.trials === 0 ? (
            <Notice kind="empty" title="No failed or held trials.">
              Attempts that were retried successfully are on their run's page.
            </Notice>
          ) : (
            <>
              <p class="lead">
                {data.more && "The newest "}
                {plural(data.trials, "failed or held trial")} in{" "}
                {plural(data.groups.length + data.groups_left_out, "group")}. To requeue:{" "}
                <code>ablate retry {name}</code>
              </p>
              <FailureGroups groups={data.groups} withSweep={false} />
              {data.groups_left_out > 0 && (
                <p class="muted">and {plural(data.groups_left_out, "smaller group")}</p>
              )}
              {data.levels.length > 0 && <Levels levels={data.levels} partial={data.more} />}
            </>
          )
        }
      </Loaded>
    </>
  );
}

function Levels({ levels, partial }: { levels: FailureLevel[]; partial: boolean }) {
  return (
    <section aria-labelledby="levels">
      <h2 id="levels">By setting</h2>
      <TablePanel
        caption="Settings of failed rows, the highest share first"
        head={
          <>
            <ColumnHead>Key</ColumnHead>
            <ColumnHead>Value</ColumnHead>
            <ColumnHead num>Failed</ColumnHead>
            <ColumnHead num>of</ColumnHead>
            <ColumnHead num>Share</ColumnHead>
          </>
        }
      >
        {levels.map((level) => (
          <tr key={`${level.key} ${level.value}`}>
            <th scope="row">
              <code>{level.key}</code>
            </th>
            <td>
              <code class="name" title={level.value}>
                {level.value}
              </code>
            </td>
            <td class="num">{whole(level.failed)}</td>
            <td class="num">{whole(level.trials)}</td>
            <td class="num">{Math.round((100 * level.failed) / Math.max(1, level.trials))} %</td>
          </tr>
        ))}
      </TablePanel>
      {partial && <p class="muted">Only of the trials above; older ones are not counted.</p>}
    </section>
  );
}
