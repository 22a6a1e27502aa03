// SPDX-License-Identifier: Apache-2.0
import { Swatch } from "../../../components/swatch";
import { rowName, sameName, whole } from "../../../format";
import type { TableRow as Row } from "../../../generated/ablate";
import type { Look } from "../../../palette";
import { navigate, withQuery } from "../../../router";
import type { Line } from "../../../series";

interface Props {
  /** Rows that are found, of how many. */
  rows: Pick<Row, "id" | "label">[];
  of: number;
  find: string;
  looks: Map<string, Look>;
  hidden: ReadonlySet<string>;
  picked: ReadonlySet<string>;
  /** There are many lines, so rows can be starred. */
  canPick: boolean;
  /** The means that are drawn, to say of how many seeds each is. */
  lines: Line[];
}

/** With more rows than this the key has a search field. */
const kMany = 8;

/** The rows' names with their lines; each switches its row off and on, and is picked among many. */
export function Key({ rows, of, find, looks, hidden, picked, canPick, lines }: Props) {
  const byRow = new Map<string, Line[]>();
  for (const line of lines) byRow.set(line.id, [...(byRow.get(line.id) ?? []), line]);
  const toggle = (name: "hide" | "pick", set: ReadonlySet<string>, id: string): void => {
    const next = new Set(set);
    if (!next.delete(id)) next.add(id);
    navigate(withQuery({ [name]: next.size ? [...next].join(" ") : null }));
  };
  return (
    <div class="key" role="group" aria-label="Rows shown in the charts">
      {of > kMany && (
        <input
          type="search"
          class="key-find"
          aria-label="Find rows in the charts"
          placeholder="Find rows"
          value={find}
          onInput={(event) => navigate(withQuery({ rows: event.currentTarget.value || null }), "replace")}
        />
      )}
      {find && (
        <span class="key-found muted" role="status">
          {whole(rows.length)} of {whole(of)} rows
        </span>
      )}
      {rows.map((row) => (
        <div class="key-row" key={row.id}>
          <button
            type="button"
            title={rowName(row.id, row.label)}
            aria-pressed={!hidden.has(row.id)}
            onClick={() => toggle("hide", hidden, row.id)}
          >
            <Swatch look={looks.get(row.id)!} />
            {!sameName(row.id, row.label) && <span class="row-id name">{row.id}</span>}
            <span class="key-label">{row.label}</span>
            <SeedCount lines={byRow.get(row.id) ?? []} />
          </button>
          {canPick && (
            <button
              type="button"
              class="key-pick"
              aria-label={`Draw ${row.id} strongly`}
              aria-pressed={picked.has(row.id)}
              onClick={() => toggle("pick", picked, row.id)}
            >
              {picked.has(row.id) ? "★" : "☆"}
            </button>
          )}
        </div>
      ))}
      {hidden.size > 0 && (
        <button type="button" class="quiet key-all" onClick={() => navigate(withQuery({ hide: null }))}>
          Show all rows
        </button>
      )}
    </div>
  );
}

/** "n 2/3": of how many seeds a row's mean is, and whether some of them diverged. */
function SeedCount({ lines }: { lines: Line[] }) {
  if (lines.length === 0) return null;
  const runs = Math.max(...lines.map((line) => line.runs));
  const of = Math.max(...lines.map((line) => line.of));
  const diverged = new Set(lines.flatMap((line) => line.breaks.map((lost) => lost.run))).size;
  return (
    <span class="key-count num">
      n {runs < of ? `${runs}/${of}` : runs}
      {diverged > 0 && <span class="bad">, ✕ {diverged} diverged</span>}
    </span>
  );
}
