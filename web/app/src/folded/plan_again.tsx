// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import { act } from "../acting/act";
import { useCaller, whyNot } from "../acting/caller";
import { asApiError, get } from "../api";
import { Loaded } from "../components/notice";
import type { ProvenanceResponse, SweepDetail, SweepPlan } from "../generated/ablate";
import { Plan } from "../pages/submit/plan";
import type { Resource } from "../resource";

/** What a sweep's file would run and need if it were submitted now. */
export function PlanAgain({ sweep }: { sweep: SweepDetail }) {
  const caller = useCaller();
  const why = whyNot(caller, ["Plan"]);
  const [plan, setPlan] = useState<Resource<SweepPlan>>({});
  const asks = caller !== undefined && !why;
  useEffect(() => {
    if (!asks) return;
    const abort = new AbortController();
    planOf(sweep, abort.signal)
      .then((data) => ({ data }))
      .catch((error: unknown) => ({ error: asApiError(error) }))
      .then((found) => !abort.signal.aborted && setPlan(found));
    return () => abort.abort();
  }, [asks, sweep.text]);
  if (why) return <p class="muted">{why}</p>;
  return (
    <Loaded of={plan} what="The plan" lines={5}>
      {(data) => <Plan plan={data} busy={false} extends={false} />}
    </Loaded>
  );
}

async function planOf(sweep: SweepDetail, signal: AbortSignal): Promise<SweepPlan> {
  const from = await get<ProvenanceResponse>(
    `/sweeps/${encodeURIComponent(sweep.summary.name)}/provenance`,
    signal,
  );
  const file = from.provenance.findLast(({ file: one }) => one.startsWith("/"))?.file ?? "";
  return act(
    "Plan",
    { file: { path: sweep.file || "sweep.yaml", folder: file.replace(/\/[^/]*$/, ""), text: sweep.text } },
    signal,
  );
}
