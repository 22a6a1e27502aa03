// SPDX-License-Identifier: Apache-2.0
import { moment, plural, rowName, whole } from "../format";
import type { FailureGroup } from "../generated/ablate";
import { failuresPath, Link, runPath } from "../router";
import { State } from "./state";

const kClassText: Record<FailureGroup["failure"], string> = {
  FAILURE_CLASS_UNSPECIFIED: "not classified",
  FAILURE_CLASS_INFRASTRUCTURE: "infrastructure",
  FAILURE_CLASS_RESOURCES: "resources",
  FAILURE_CLASS_TRIAL: "trial",
  FAILURE_CLASS_DATA: "data",
};

/** Groups of trials that failed in the same way, the largest first. `withSweep`: they come from several sweeps. */
export function FailureGroups({ groups, withSweep }: { groups: FailureGroup[]; withSweep: boolean }) {
  return (
    <ul class="failure-groups">
      {groups.map((group) => (
        <li key={`${group.failure} ${group.state} ${group.line}`} class="panel">
          <div class="failure-head">
            <State state={group.state} />
            <span class="tag">{kClassText[group.failure]}</span>
            <span class="num">{plural(group.trials, "trial")}</span>
            {group.newest && (
              <span class="muted">
                newest <time dateTime={group.newest}>{moment(group.newest)}</time>
              </span>
            )}
          </div>
          <p class="failure-line">{group.line || "No message."}</p>
          {group.common.length > 0 && (
            <p class="muted">
              Only in rows with{" "}
              {group.common.map((setting, i) => (
                <span key={setting}>
                  {i > 0 && ", "}
                  <code>{setting}</code>
                </span>
              ))}
            </p>
          )}
          <Examples group={group} withSweep={withSweep} />
        </li>
      ))}
    </ul>
  );
}

const kShown = 6;

function Examples({ group, withSweep }: { group: FailureGroup; withSweep: boolean }) {
  const items = group.examples.map((trial) => {
    const name = `${withSweep ? `${trial.sweep} / ` : ""}${rowName(trial.row, trial.label)}, seed ${trial.seed}`;
    return (
      <li key={trial.trial}>
        {trial.run > 0 ? (
          <Link class="run" href={runPath(trial.run)} title={name}>
            <span class="name">{name}</span>
          </Link>
        ) : (
          <span class="run" title={name}>
            <span class="name">{name}</span>
          </span>
        )}
      </li>
    );
  });
  const others = group.trials - group.examples.length;
  const sweeps = [...new Set(group.examples.map((trial) => trial.sweep).filter(Boolean))];
  return (
    <>
      <ul class="runs">{items.slice(0, kShown)}</ul>
      {items.length > kShown && (
        <details>
          <summary>{whole(items.length - kShown)} more</summary>
          <ul class="runs">{items.slice(kShown)}</ul>
        </details>
      )}
      {others > 0 && <p class="muted">and {plural(others, "older trial")}</p>}
      {withSweep && (
        <p class="failure-sweeps">
          {sweeps.map((sweep) => (
            <Link key={sweep} href={failuresPath(sweep)}>
              All failures of {sweep}
            </Link>
          ))}
        </p>
      )}
    </>
  );
}
