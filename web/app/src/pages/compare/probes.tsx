// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import { ErrorNotice } from "../../components/notice";
import { ColumnHead, TablePanel } from "../../components/table_panel";
import type { ComparedSide, ProbeFound, ProbesResponse } from "../../generated/ablate";
import { differenceText, readFound, unitOf, withUnit, type Found } from "../../probes/found";
import { OpenedProbe } from "../../probes/opened";
import { useProbes } from "../../probes/read";

/** A probe that both runs have, with the same settings. */
interface Both {
  name: string;
  listed: [ProbeFound, ProbeFound];
  found: [Found, Found];
}

/** What probes found in both runs: each value with its difference. Nothing where they have no probe in common. */
export function ComparedProbes({ a, b }: { a: ComparedSide; b: ComparedSide }) {
  const ofA = useProbes(a.run, a.state);
  const ofB = useProbes(b.run, b.state);
  const common = useMemo(() => inBoth(ofA.data, ofB.data), [ofA.data, ofB.data]);
  const error = ofA.error ?? ofB.error;
  if (error) return <ErrorNotice error={error} what="The probes" />;
  if (common.length === 0) return null;
  return (
    <section aria-labelledby="probes">
      <h2 id="probes">Probes</h2>
      <TablePanel
        caption="Values that probes found in both runs"
        head={
          <>
            <ColumnHead>Probe</ColumnHead>
            <ColumnHead>Value</ColumnHead>
            <ColumnHead num>A</ColumnHead>
            <ColumnHead num>B</ColumnHead>
            <ColumnHead num>B − A</ColumnHead>
          </>
        }
      >
        {common.flatMap(rowsOf)}
      </TablePanel>
      <div class="panel probe">
        {common.map(({ name, listed, found }) => {
          const missing = (["A", "B"] as const).filter((_, i) => found[i]!.missing);
          return missing.length > 0 ? (
            <p key={name} class="muted probe-lacking">
              {name}: nothing found in {missing.join(" and ")}:{" "}
              {[...new Set(found.map((side) => side.missing).filter(Boolean))].join("; ")}
            </p>
          ) : (
            <OpenedProbe
              key={name}
              name={name}
              of={[a, b].map(({ run }, i) => ({ run, listed: listed[i]! }))}
            />
          );
        })}
      </div>
    </section>
  );
}

function inBoth(a: ProbesResponse | undefined, b: ProbesResponse | undefined): Both[] {
  return (a?.probes ?? []).flatMap((one) => {
    const other = b?.probes.find(({ name }) => name === one.name);
    if (!other) return [];
    const found: Both["found"] = [readFound(one.found_json), readFound(other.found_json)];
    return [{ name: one.name, listed: [one, other], found }];
  });
}

function rowsOf({ name, found: [a, b] }: Both) {
  const valueOf = (found: Found, value: string): number =>
    found.values.find((each) => each.name === value)?.value ?? NaN;
  const values = [...new Set([...a.values, ...b.values].map((value) => value.name))];
  return values.map((value, i) => {
    const [x, y, unit] = [valueOf(a, value), valueOf(b, value), unitOf(a.probe, value)];
    return (
      <tr key={`${name} ${value}`}>
        {i === 0 && (
          <th scope="rowgroup" rowSpan={values.length} class="probe-of">
            <code>{name}</code>
          </th>
        )}
        <th scope="row" class="probe-value">
          {value}
        </th>
        <td class="num">{withUnit(x, unit)}</td>
        <td class="num">{withUnit(y, unit)}</td>
        <td class="num">{differenceText(x, y, unit)}</td>
      </tr>
    );
  });
}
