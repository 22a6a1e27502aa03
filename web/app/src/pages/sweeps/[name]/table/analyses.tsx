// SPDX-License-Identifier: Apache-2.0
import { fixed, plural, pText } from "../../../../format";
import type { Cell, Table } from "../../../../generated/ablate";
import { headingOf } from "./columns";

/** How columns agree with the paper's, and what the factors of a sweep explain of them. */
export function Analyses({ table }: { table: Table }) {
  const number = (value: Cell["mean"], digits: number) =>
    typeof value === "number" ? fixed(value, digits) : "–";
  const headings = new Map(table.columns.map((column) => [column.name, headingOf(column, table.pivot)]));
  return (
    <>
      {table.paper_agreement.length > 0 && (
        <ul class="notes">
          {table.paper_agreement.map((said) => (
            <li key={said.column} title={said.why}>
              {headings.get(said.column)}: agreement with the paper over {plural(said.rows, "row")}: Kendall's
              τ<sub>b</sub> {number(said.tau, 2)}
              {said.tau_interval &&
                ` (95 % interval ${number(said.tau_interval.low, 2)} to ${number(said.tau_interval.high, 2)})`}
              {said.signs > 0 &&
                `; ${said.same_signs} of ${plural(said.signs, "difference")} from the baseline ${said.same_signs === 1 ? "has" : "have"} the paper's sign`}
            </li>
          ))}
        </ul>
      )}
      {table.factor_analyses
        .filter((said) => said.effects.length > 0)
        .map((said) => (
          <details key={said.column}>
            <summary>{headings.get(said.column)}: analysis of variance of all rows</summary>
            <table>
              <thead>
                <tr>
                  <th scope="col">Factor</th>
                  {["df", "F", "p", "η²", "ω²"].map((head) => (
                    <th key={head} scope="col" class="num">
                      {head}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {[...said.effects]
                  .sort((a, b) => Number(b.eta_squared) - Number(a.eta_squared))
                  .map((effect) => (
                    <tr key={effect.factors.join()}>
                      <th scope="row">{effect.factors.join(" × ")}</th>
                      <td class="num">{effect.df}</td>
                      <td class="num">{number(effect.f, 2)}</td>
                      <td class="num">
                        {typeof effect.p === "number" ? pText(effect.p).replace("= ", "") : "–"}
                      </td>
                      <td class="num">{number(effect.eta_squared, 3)}</td>
                      <td class="num">{number(effect.omega_squared, 3)}</td>
                    </tr>
                  ))}
              </tbody>
            </table>
            {said.why && <p class="muted">{said.why}</p>}
          </details>
        ))}
    </>
  );
}
