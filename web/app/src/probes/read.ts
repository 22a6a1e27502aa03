// SPDX-License-Identifier: Apache-2.0
import type { ProbesResponse } from "../generated/ablate";
import { useResource, type Resource } from "../resource";

/** Probes are stored when a run ends: until then a change of the run is seldom one of them. */
const kSlowMs = 10_000;

/** What probes found in the model of a run (undefined: nothing yet), without arrays and pictures. `state`: the run's, which tells of its end. */
export function useProbes(run: number | undefined, state: string): Resource<ProbesResponse> {
  return useResource<ProbesResponse>(
    run === undefined ? null : `/runs/${run}/probes`,
    (change) => change.run === run || change.run === 0,
    undefined,
    { ms: kSlowMs, watched: state },
  );
}
