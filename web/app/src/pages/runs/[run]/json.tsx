// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";

/** A JSON document for reading: indented, keys set apart, short lists and objects on one line. */
export function Json({ text, label }: { text: string; label: string }) {
  if (!text) return <p class="muted">Nothing was reported.</p>;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return <pre class="panel code">{text}</pre>;
  }
  return (
    <pre class="panel code" tabIndex={0} role="region" aria-label={`${label} as JSON`}>
      {pretty(value, "")}
    </pre>
  );
}

const kShort = 60;

function pretty(value: unknown, indent: string): ComponentChildren {
  if (value === null || typeof value !== "object")
    return (
      <span class={typeof value === "string" ? "json-text" : "json-value"}>{JSON.stringify(value)}</span>
    );
  const list = Array.isArray(value);
  const entries = Object.entries(value);
  const [open, close] = list ? ["[", "]"] : ["{", "}"];
  const flat =
    indent !== "" &&
    JSON.stringify(value).length <= kShort &&
    entries.every(([, v]) => v === null || typeof v !== "object");
  const inner = `${indent}  `;
  return (
    <>
      {open}
      {entries.map(([key, child], i) => (
        <>
          {flat ? (i > 0 ? " " : "") : `\n${inner}`}
          {!list && <span class="json-key">{key}</span>}
          {!list && ": "}
          {pretty(child, inner)}
          {i < entries.length - 1 && ","}
        </>
      ))}
      {!flat && entries.length > 0 && `\n${indent}`}
      {close}
    </>
  );
}
