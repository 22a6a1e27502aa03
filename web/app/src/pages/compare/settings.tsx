// SPDX-License-Identifier: Apache-2.0
import type { ComparedSetting, CompareResponse } from "../../generated/ablate";
import { ColumnHead, TablePanel } from "../../components/table_panel";

/** Which settings differ, and the environments. */
export function Settings({ compared }: { compared: CompareResponse }) {
  const areSweeps = compared.a.kind === "sweep";
  const ofRows = compared.rows.flatMap((row) =>
    row.settings.map((setting) => ({ ...setting, key: `${row.id}: ${setting.key}` })),
  );
  if (areSweeps && compared.common === 0) return null;
  return (
    <section aria-labelledby="settings">
      <h2 id="settings">Configuration</h2>
      {compared.settings.length + ofRows.length === 0 ? (
        <p class="muted">{areSweeps ? "Rows in both have the same configuration." : "Same configuration."}</p>
      ) : (
        <>
          <SettingTable
            caption={areSweeps ? "Differences in every row" : "Differences"}
            settings={compared.settings}
          />
          <SettingTable caption="Differences in some rows" settings={ofRows} />
        </>
      )}
      <SettingTable caption="Environment" settings={compared.environment} />
    </section>
  );
}

function SettingTable({ caption, settings }: { caption: string; settings: ComparedSetting[] }) {
  if (settings.length === 0) return null;
  return (
    <TablePanel
      caption={caption}
      titled
      class="settings"
      head={
        <>
          <ColumnHead>Key</ColumnHead>
          <ColumnHead>A</ColumnHead>
          <ColumnHead>B</ColumnHead>
        </>
      }
    >
      {settings.map(({ key, a, b }) => (
        <tr key={key}>
          <th scope="row">
            <code>{key}</code>
          </th>
          <td>
            <Value text={a} />
          </td>
          <td>
            <Value text={b} />
          </td>
        </tr>
      ))}
    </TablePanel>
  );
}

function Value({ text }: { text: string }) {
  return text ? <code>{text}</code> : <span class="muted">not set</span>;
}
