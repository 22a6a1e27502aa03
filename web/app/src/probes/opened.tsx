// SPDX-License-Identifier: Apache-2.0
import type { ComponentType } from "preact";
import { useState } from "preact/hooks";
import { Loaded } from "../components/notice";
import type { ProbeFound } from "../generated/ablate";
import { useLate } from "../late";

type Whole = ComponentType<{ run: number; listed: ProbeFound; of?: string }>;
const whole = (): Promise<{ default: Whole }> => import("./whole");

/** Arrays and pictures of a probe in one or several runs: neither they nor what draws them is read before this is opened. */
export function OpenedProbe({ of, name }: { of: { run: number; listed: ProbeFound }[]; name: string }) {
  const isAlone = of.length === 1; // below its name
  const [open, setOpen] = useState(false);
  return (
    <details class="probe-whole" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        Charts and pictures<span class={isAlone ? "sr-only" : ""}> of {name}</span>
      </summary>
      {open && <Content of={of} />}
    </details>
  );
}

function Content({ of }: { of: { run: number; listed: ProbeFound }[] }) {
  const resource = useLate(whole);
  if (of.length === 1)
    return (
      <Loaded of={resource} what="The charts">
        {(Part) => <Part {...of[0]!} />}
      </Loaded>
    );
  return (
    <Loaded of={resource} what="The charts">
      {(Part) => (
        <div class="probe-sides">
          {of.map((side, i) => (
            <div key={side.run}>
              <p class="probe-side">
                <span class="side-letter">{"AB"[i]}</span> run {side.run}
              </p>
              <Part {...side} of={` of run ${side.run}`} />
            </div>
          ))}
        </div>
      )}
    </Loaded>
  );
}
