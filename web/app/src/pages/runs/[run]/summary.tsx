// SPDX-License-Identifier: Apache-2.0
import { Fact } from "../../../components/fact";
import { StepsBar } from "../../../components/progress";
import { State, stateWord } from "../../../components/state";
import { duration, moment, rate, took, whole } from "../../../format";
import type { RunDetail } from "../../../generated/ablate";

/** What became of the run, in a few facts. */
export function Summary({ detail }: { detail: RunDetail }) {
  const summary = detail.summary;
  const perSecond = Number(summary.steps_per_second);
  const under = ["leased", "running"].includes(stateWord(summary.state));
  const left = under && perSecond > 0 ? (summary.total_steps - summary.step) / perSecond : undefined;
  return (
    <>
      {summary.reason && <p class="reason">{summary.reason}</p>}
      {summary.refused_lines > 0 && (
        <p class="reason">
          {whole(summary.refused_lines)} {summary.refused_lines === 1 ? "metric report" : "metric reports"}{" "}
          refused, such as {summary.refused_example}
        </p>
      )}
      {summary.repeated_points > 0 && (
        <p class="reason">
          {whole(summary.repeated_points)}{" "}
          {summary.repeated_points === 1 ? "point repeats an earlier step" : "points repeat earlier steps"}{" "}
          with a different value; the first value was kept
        </p>
      )}
      {detail.before_mend.map((mend) => (
        <p class="reason" key={mend}>
          Made before a correction: {mend}
        </p>
      ))}
      <dl class="facts panel">
        <Fact name="State">
          <State state={summary.state} />
        </Fact>
        <Fact name="Progress">
          <StepsBar step={summary.step} total={summary.total_steps} />
          <span class="muted num">
            {whole(summary.step)} of {summary.total_steps ? whole(summary.total_steps) : "?"} steps
          </span>
        </Fact>
        <Fact name="Rate">{rate(perSecond)} steps/s</Fact>
        <Fact name={under ? "Time left" : "Took"}>{under ? duration(left) : took(summary)}</Fact>
        <Fact name="Started">
          {summary.started ? <time dateTime={summary.started}>{moment(summary.started)}</time> : "–"}
        </Fact>
        <Fact name="Worker">
          {summary.worker}
          {summary.host && summary.host !== summary.worker && <span class="muted">on {summary.host}</span>}
        </Fact>
        <Fact name="Attempt">
          {summary.attempt}
          {summary.resumed_from_step !== undefined && (
            <span class="muted">resumed from step {whole(summary.resumed_from_step)}</span>
          )}
          {!summary.bit_exact && (
            <span class="tag" title="Resumed on another build, device, instruction set or thread count">
              not bit-exact
            </span>
          )}
        </Fact>
        {summary.failure !== "FAILURE_CLASS_UNSPECIFIED" && (
          <Fact name="Failure">
            {summary.failure.replace("FAILURE_CLASS_", "").toLowerCase()}
            {summary.failure_rule && <span class="muted">by retry.on: {summary.failure_rule}</span>}
          </Fact>
        )}
        {detail.exit_code !== undefined && <Fact name="Exit code">{detail.exit_code}</Fact>}
        {detail.signal !== undefined && <Fact name="Signal">{detail.signal}</Fact>}
        <Fact name="Trial">
          {summary.trial}
          <code title={detail.config_hash}>{detail.config_hash.slice(0, 12)}</code>
        </Fact>
        {detail.data_fingerprint && (
          <Fact name="Data">
            <code title={detail.data_fingerprint}>{briefFingerprint(detail.data_fingerprint)}</code>
          </Fact>
        )}
        {detail.directory && (
          <Fact name="Folder">
            <code class="path">{detail.directory}</code>
          </Fact>
        )}
      </dl>
    </>
  );
}

/** "folder-1:0d89c6de27e2…" -> "folder-1:0d89c6de": the kind of data whole, and a part of what tells them apart. */
function briefFingerprint(text: string): string {
  const [kind, ...rest] = text.split(":");
  return rest.length > 0 ? `${kind}:${rest.join(":").slice(0, 8)}` : text.slice(0, 24);
}
