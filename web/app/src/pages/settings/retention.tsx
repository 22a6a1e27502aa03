// SPDX-License-Identifier: Apache-2.0
import { Loaded } from "../../components/notice";
import { ColumnHead, TablePanel } from "../../components/table_panel";
import { bytes, whole } from "../../format";
import type { Kept, KeptPlace, Retention as Answer } from "../../generated/ablate";
import { useResource } from "../../resource";

/** What is kept for how long, and how much of it there is. */
export function Retention() {
  const answer = useResource<Answer>("/retention", () => false);
  return (
    <section aria-labelledby="retention">
      <h2 id="retention">Retention</h2>
      <p class="muted">
        What is kept and for how long, as <code>ablate retention</code> says it.
      </p>
      <Loaded of={answer} what="The retention" lines={8}>
        {({ places }) => (
          <>
            {places.map((place) => (
              <Place key={place.name} place={place} />
            ))}
          </>
        )}
      </Loaded>
    </section>
  );
}

function Place({ place }: { place: KeptPlace }) {
  const size = place.bytes === undefined ? "" : amount(place.bytes, place.limit, "bytes");
  return (
    <>
      <h3>
        {place.name}
        {size && <span class="muted"> {size}</span>}
      </h3>
      {place.path && (
        <p class="kept-path">
          <code>{place.path}</code>
        </p>
      )}
      {place.note && <p class="muted">{place.note}</p>}
      {place.kept.length > 0 && (
        <TablePanel
          caption={place.name}
          class="kept"
          head={
            <>
              <ColumnHead>What</ColumnHead>
              <ColumnHead>How long it is kept</ColumnHead>
              <ColumnHead num>In use</ColumnHead>
              <ColumnHead>Decided by</ColumnHead>
            </>
          }
        >
          {place.kept.map((kept) => (
            <tr key={kept.what}>
              <th scope="row">{kept.what}</th>
              <td>{kept.rule}</td>
              <td class="num">{useOf(kept) || <span class="muted">–</span>}</td>
              <td>{kept.setting ? <code>{kept.setting}</code> : <span class="muted">fixed</span>}</td>
            </tr>
          ))}
        </TablePanel>
      )}
    </>
  );
}

/** "12 of 100,000 lines", "1.2 GB of 20 GB", "at most 500 measurements". */
function useOf({ used, limit, unit }: Kept): string {
  if (used !== undefined) return amount(used, limit, unit);
  return limit === undefined ? "" : `at most ${amount(limit, undefined, unit)}`;
}

function amount(used: string, limit: string | undefined, unit: string): string {
  const said = (count: string): string => (unit === "bytes" ? bytes(Number(count)) : whole(Number(count)));
  const text = limit === undefined ? said(used) : `${said(used)} of ${said(limit)}`;
  return unit === "bytes" ? text : `${text} ${unit}`;
}
