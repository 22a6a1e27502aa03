// SPDX-License-Identifier: Apache-2.0
import { Menu } from "../../../../components/menu";
import { Loaded } from "../../../../components/notice";
import { plural } from "../../../../format";
import type { Pivot, TableFactor, TableFactors } from "../../../../generated/ablate";
import { useResource } from "../../../../resource";
import { Link, navigate, useAddress, withQuery } from "../../../../router";
import { formOf, withForm } from "./form";

/** Levels over which the server draws no columns. */
const kMostLevels = 50;

interface Props {
  sweep: string;
  /** That the sweep's file asks for. */
  ofFile: Pivot | undefined;
}

/** Which factors lie along the columns; the others lie down the rows. What there is to pick is read when the menu is opened. */
export function PivotMenu(props: Props) {
  const { picked } = formOf(useAddress().searchParams);
  return (
    <Menu title={picked.length > 0 ? `Pivot: ${picked.join(", ")}` : "Pivot"}>
      {() => <Panel {...props} />}
    </Menu>
  );
}

function Panel({ sweep, ofFile }: Props) {
  const path = `/sweeps/${encodeURIComponent(sweep)}/factors`;
  const factors = useResource<TableFactors>(path, () => false);
  return (
    <Loaded of={factors} what="What rows differ in" lines={3}>
      {(data) => <Picker factors={data.factors} leftOut={data.left_out} ofFile={ofFile} />}
    </Loaded>
  );
}

/** Whether the address or the file means this factor by a name: its own, or an ending of its key. */
const isNamed = ({ name, key }: TableFactor, by: string): boolean =>
  name === by || key === by || key.endsWith(`.${by}`);

function Picker({
  factors,
  leftOut,
  ofFile,
}: {
  factors: TableFactor[];
  leftOut: number;
  ofFile: Pivot | undefined;
}) {
  const form = formOf(useAddress().searchParams);
  if (factors.length === 0) return <p>The rows do not differ in any factor.</p>;
  const inUse = form.picked.length > 0 ? form.picked : ofFile && !form.asRows ? [ofFile.by] : [];
  const along = inUse.flatMap((by) => factors.find((factor) => isNamed(factor, by)) ?? []);
  const pick = (factor: TableFactor): void => {
    const next = along.includes(factor) ? along.filter((one) => one !== factor) : [...along, factor];
    const picked = next.map(({ name }) => name);
    navigate(withQuery(withForm({ picked, asRows: picked.length === 0 && ofFile !== undefined })));
  };
  const down = factors.filter((factor) => !along.includes(factor)).map(({ name }) => name);
  return (
    <>
      <fieldset>
        <legend>Factors along the columns</legend>
        {factors.map((factor) => (
          <label key={factor.key} title={`${factor.key}: ${levelsText(factor)}`}>
            <input
              type="checkbox"
              checked={along.includes(factor)}
              disabled={factor.levels > kMostLevels && !along.includes(factor)}
              onChange={() => pick(factor)}
            />
            <span class="name">{factor.name}</span>
            <span class="muted">{plural(factor.levels, "level")}</span>
          </label>
        ))}
        {leftOut > 0 && <p class="muted">and {plural(leftOut, "more factor")}</p>}
      </fieldset>
      <p class="muted" role="status">
        {along.length > 0 && `Columns: ${along.map(({ name }) => name).join(", then ")}. `}
        {down.length > 0 ? `Rows: ${down.join(", ")}.` : "One row."}
      </p>
      {along.length > 0 && (
        <Link href={withQuery(withForm({ picked: [], asRows: ofFile !== undefined }))}>One line per row</Link>
      )}
    </>
  );
}

function levelsText({ first_levels: first, levels }: TableFactor): string {
  return first.join(", ") + (levels > first.length ? ", …" : "");
}
