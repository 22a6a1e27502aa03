// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import { ErrorNotice, Loaded } from "../../../components/notice";
import { moment, whole } from "../../../format";
import type { ProbeFound, ProbesResponse } from "../../../generated/ablate";
import { readFound, unitOf, withUnit } from "../../../probes/found";
import { OpenedProbe } from "../../../probes/opened";
import type { Resource } from "../../../resource";

interface Props {
  run: number;
  of: Resource<ProbesResponse>;
  /** Whether one can be run. */
  ready: boolean;
}

export function Probes({ run, of, ready }: Props) {
  const probes = of.data?.probes;
  if (of.error && !probes) return <ErrorNotice error={of.error} what="The probes" />;
  if (probes?.length === 0)
    return ready ? (
      <p class="muted no-probes">
        No probe is stored. This runs one: <code>ablate probe {run} NAME</code>
      </p>
    ) : null;
  return (
    <section aria-labelledby="probes">
      <h2 id="probes">Probes</h2>
      <Loaded of={of} what="The probes" lines={2}>
        {(data) => (
          <div class="probes">
            {data.probes.map((probe) => (
              <Probe key={probe.name} run={run} probe={probe} />
            ))}
          </div>
        )}
      </Loaded>
    </section>
  );
}

function Probe({ run, probe }: { run: number; probe: ProbeFound }) {
  const found = useMemo(() => readFound(probe.found_json), [probe.found_json]);
  return (
    <article class="panel probe" aria-label={`Probe ${probe.name}`}>
      <div class="probe-head">
        <h3>{probe.name}</h3>
        {found.settings.map(({ name, text }) => (
          <code key={name}>
            {name}={text}
          </code>
        ))}
        <span class="muted">
          at step {whole(probe.step)}
          {probe.time && (
            <>
              , stored <time dateTime={probe.time}>{moment(probe.time)}</time>
            </>
          )}
        </span>
      </div>
      {found.missing && <p class="probe-missing">Nothing found: {found.missing}</p>}
      {found.values.length > 0 && (
        <dl class="probe-values">
          {found.values.map(({ name, value }) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd class="num">{withUnit(value, unitOf(found.probe, name))}</dd>
            </div>
          ))}
        </dl>
      )}
      {found.notes.length > 0 && (
        <ul class="probe-notes muted">
          {found.notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      )}
      {!found.missing && <OpenedProbe of={[{ run, listed: probe }]} name={probe.name} />}
    </article>
  );
}
