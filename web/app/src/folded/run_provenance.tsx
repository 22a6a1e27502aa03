// SPDX-License-Identifier: Apache-2.0
import { Fact } from "../components/fact";
import type { RunDetail } from "../generated/ablate";
import { Link, sweepPath } from "../router";
import { Provenance } from "./provenance";
import { parsed } from "./train_again_text";

/** What a run was made with, and where the sweeps that have it come from. */
export function RunProvenance({ detail }: { detail: RunDetail }) {
  const [config, environment] = [parsed(detail.config_json), parsed(detail.environment_json)];
  const versions = [
    ["Trainer", environment.trainer],
    ["PyTorch", environment.torch],
    ["Program", config.version],
    ["Result version", detail.result_version],
    ["Instruction set", environment.instructions],
    ["Device", environment.device],
  ] as const;
  const sweeps = [...new Set(detail.summary.rows.map(({ sweep }) => sweep))];
  return (
    <>
      <dl class="facts panel">
        {versions.map(
          ([name, value]) =>
            value !== undefined &&
            value !== "" && (
              <Fact key={name} name={name}>
                {String(value)}
              </Fact>
            ),
        )}
      </dl>
      {sweeps.map((sweep) => (
        <section key={sweep} aria-label={`Provenance of ${sweep}`}>
          <h3>
            <Link href={sweepPath(sweep)}>{sweep}</Link>
          </h3>
          <Provenance sweep={sweep} />
        </section>
      ))}
    </>
  );
}
