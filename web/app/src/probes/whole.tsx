// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import { Loaded } from "../components/notice";
import type { ProbeFound, ProbesResponse } from "../generated/ablate";
import { useResource } from "../resource";
import { saveFile } from "../save_file";
import { ArrayPanel } from "./array_panel";
import { readFound } from "./found";
import { isLegend, Legend } from "./legend";
import { Picture } from "./picture";

interface Props {
  run: number;
  /** As it was listed: read again where it is another by now. */
  listed: ProbeFound;
  /** Of two that are shown side by side. */
  of?: string;
}

/** Arrays and pictures of a probe, which are read when this is shown. */
export default function Whole({ run, listed, of = "" }: Props) {
  const { name, time } = listed;
  const path = `/runs/${run}/probes?name=${encodeURIComponent(name)}`;
  const whole = useResource<ProbesResponse>(path, () => false, `${path} ${time}`);
  return (
    <Loaded of={whole} what={`Probe ${name}`}>
      {({ probes: [probe] }) => (probe ? <Parts run={run} probe={probe} of={of} /> : null)}
    </Loaded>
  );
}

function Parts({ run, probe, of }: { run: number; probe: ProbeFound; of: string }) {
  const found = useMemo(() => readFound(probe.found_json), [probe.found_json]);
  const [legends, arrays] = [found.arrays.filter(isLegend), found.arrays.filter((array) => !isLegend(array))];
  const file = `run-${run}-${probe.name.replace(/[^\w.-]+/g, "-")}.json`;
  return (
    <>
      {arrays.length > 0 && (
        <div class="probe-arrays">
          {arrays.map((array) => (
            <ArrayPanel key={array.name} probe={found.probe} array={array} of={` of ${probe.name}${of}`} />
          ))}
        </div>
      )}
      {legends.map((array) => (
        <Legend key={array.name} array={array} of={` of ${probe.name}${of}`} />
      ))}
      {probe.pictures.length > 0 && (
        <div class="probe-pictures">
          {probe.pictures.map((picture) => (
            <Picture key={picture.name} run={run} probe={probe.name} picture={picture} />
          ))}
        </div>
      )}
      {found.arrays.length === 0 && probe.pictures.length === 0 && (
        <p class="muted">This probe has neither arrays nor pictures.</p>
      )}
      <p class="probe-more">
        <button type="button" onClick={() => saveFile(file, [probe.found_json], "application/json")}>
          Download JSON
        </button>
      </p>
    </>
  );
}
