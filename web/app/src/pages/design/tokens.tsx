// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ColumnHead, TablePanel } from "../../components/table_panel";
import { contrast } from "./contrast";

/** Names of the custom properties of base.css, in its order. */
function propertyNames(): string[] {
  const names = [...document.styleSheets]
    .flatMap((sheet) => [...sheet.cssRules])
    .flatMap((rule) =>
      rule instanceof CSSStyleRule && rule.selectorText === ":root" ? [...rule.style] : [],
    );
  return [...new Set(names.filter((name) => name.startsWith("--")))];
}

/** The custom properties as they are in the present theme. */
function useProperties(): Map<string, string> {
  const read = (): Map<string, string> => {
    const style = getComputedStyle(document.documentElement);
    return new Map(propertyNames().map((name) => [name, style.getPropertyValue(name).trim()]));
  };
  const [properties, setProperties] = useState(read);
  useEffect(() => {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const update = (): void => setProperties(read());
    dark.addEventListener("change", update);
    return () => dark.removeEventListener("change", update);
  }, []);
  return properties;
}

/** "#fff" as "#ffffff"; undefined: not a colour of that form. */
function hexOf(value: string | undefined): string | undefined {
  if (/^#[0-9a-f]{3}$/i.test(value ?? ""))
    return `#${[...value!.slice(1)].map((digit) => digit + digit).join("")}`;
  return /^#[0-9a-f]{6}$/i.test(value ?? "") ? value : undefined;
}

const kText = 4.5;
const kGraphic = 3;
/** What stands on what, and the least contrast. */
const kPairs: [color: string, grounds: string[], least: number][] = [
  ["--ink", ["--ground", "--panel", "--raised", "--accent-soft", "--bad-soft"], kText],
  ["--muted", ["--ground", "--panel", "--raised"], kText],
  ["--accent", ["--ground", "--panel", "--raised", "--accent-soft"], kText],
  ["--good", ["--panel", "--raised"], kText],
  ["--bad", ["--ground", "--panel", "--raised", "--bad-soft"], kText],
  ["--warn", ["--panel", "--raised", "--warn-soft"], kText],
  ["--magenta", ["--panel"], kText],
  ["--cyan", ["--panel"], kText],
  ["--panel", ["--accent", "--bad"], kText],
  ["--done", ["--panel", "--edge"], kGraphic],
  ["--busy", ["--panel", "--edge"], kGraphic],
  ...[1, 2, 3, 4, 5, 6, 7].map((i): [string, string[], number] => [`--line-${i}`, ["--panel"], kGraphic]),
];

export function Colours() {
  const properties = useProperties();
  const colours = [...properties].filter(([, value]) => hexOf(value));
  return (
    <>
      <ul class="colours">
        {colours.map(([name, value]) => (
          <li key={name} class="panel">
            <span class="colour" style={{ background: `var(${name})` }} />
            <code>{name}</code>
            <code class="muted">{value}</code>
          </li>
        ))}
      </ul>
      <TablePanel
        caption="Contrast of each colour on its grounds"
        head={
          <>
            <ColumnHead>Colour</ColumnHead>
            <ColumnHead>On</ColumnHead>
            <ColumnHead>Sample</ColumnHead>
            <ColumnHead num>Contrast</ColumnHead>
            <ColumnHead num>At least</ColumnHead>
          </>
        }
      >
        {kPairs.flatMap(([color, grounds, least]) =>
          grounds.map((ground) => (
            <Pair key={color + ground} color={color} ground={ground} least={least} properties={properties} />
          )),
        )}
      </TablePanel>
    </>
  );
}

interface PairProps {
  color: string;
  ground: string;
  least: number;
  properties: Map<string, string>;
}

function Pair({ color, ground, least, properties }: PairProps) {
  const [front, back] = [hexOf(properties.get(color)), hexOf(properties.get(ground))];
  const ratio = front && back ? contrast(front, back) : 0;
  return (
    <tr>
      <th scope="row">
        <code>{color}</code>
      </th>
      <td>
        <code>{ground}</code>
      </td>
      <td>
        {least === kText ? (
          <span class="pair" style={{ color: `var(${color})`, background: `var(${ground})` }}>
            74.10 ± 1.74
          </span>
        ) : (
          <span class="pair" style={{ background: `var(${ground})` }}>
            <span class="pair-bar" style={{ background: `var(${color})` }} />
          </span>
        )}
      </td>
      <td class="num">
        {ratio < least && <strong class="bad">too low: </strong>}
        {ratio.toFixed(2)}
      </td>
      <td class="num muted">{least.toFixed(1)}</td>
    </tr>
  );
}

export function Fonts() {
  return (
    <div class="panel specimens">
      <Specimen of="h1">Heading of a page, above</Specimen>
      <Specimen of="h2">Heading of a section, above</Specimen>
      <Specimen>
        <p>Text: the mean over the seeds of each row.</p>
      </Specimen>
      <Specimen>
        <p class="lead">A page's first line.</p>
      </Specimen>
      <Specimen>
        <p class="why">Why something is so.</p>
      </Specimen>
      <Specimen>
        <span class="num">0123456789 74.10 ± 1.74</span>
      </Specimen>
      <Specimen>
        <code>params.groups=8</code>
      </Specimen>
      <Specimen>
        <span class="row-id">msf</span>
      </Specimen>
      <Specimen>
        <span class="tag">tag</span>
      </Specimen>
      <Specimen>
        <kbd>g</kbd>
      </Specimen>
    </div>
  );
}

/** A text, and the font that it is drawn in. `of`: the element of the page that has the font, if not the text itself. */
function Specimen({ of, children }: { of?: string; children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  const [font, setFont] = useState("");
  useEffect(() => {
    const element = of ? document.querySelector(`main ${of}`) : box.current!.firstElementChild;
    const style = getComputedStyle(element!);
    setFont(`${parseFloat(style.fontSize)} px, weight ${style.fontWeight}`);
  }, []);
  return (
    <div class="specimen">
      <div ref={box}>{children}</div>
      <span class="muted num">{font}</span>
    </div>
  );
}
