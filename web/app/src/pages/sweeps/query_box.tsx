// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from "preact/hooks";
import { useCaller } from "../../acting/caller";
import { Link, navigate, withQuery } from "../../router";

/** Common queries. */
const kOften = [
  ["All", ""],
  ["Running", "state:running"],
  ["Waiting", "state:waiting"],
  ["Failed", "failed>0"],
  ["Held", "held>0"],
  ["Completed", "state:completed"],
  ["Pinned", "is:pinned"],
  ["Archived", "is:archived"],
] as const;

const kPauseMs = 250;

/** The query for one's own sweeps; empty where nobody signs in. */
function useMine(): string {
  const caller = useCaller();
  return caller?.token ? `owner:"${caller.name.replaceAll('"', "?")}"` : "";
}

/** Finds sweeps by `?q=`, when typing pauses. Back leads to the page before, not through single letters. */
export function QueryBox({ query, wrong }: { query: string; wrong: string }) {
  const [text, setText] = useState(query);
  const asked = useRef(query);
  const mine = useMine();
  const often = mine ? [...kOften, ["Mine", mine] as const] : kOften;
  useEffect(() => {
    // the address changed, by Back or a link
    if (query !== asked.current) setText(query);
    asked.current = query;
  }, [query]);
  const ask = (next: string): void => {
    asked.current = next.trim();
    navigate(withQuery({ q: next.trim() || null, after: null }), "replace");
  };
  useEffect(() => {
    if (text.trim() === asked.current) return;
    const timer = setTimeout(() => ask(text), kPauseMs);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <search class="query">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          ask(text);
        }}
      >
        <input
          type="search"
          value={text}
          maxLength={1000}
          spellcheck={false}
          autocomplete="off"
          placeholder="name, state:running, owner:vera, rows>20, age<7d, acc>75"
          aria-label="Find sweeps"
          aria-invalid={wrong !== ""}
          aria-describedby="query-help"
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </form>
      <span class="switch" role="group" aria-label="Common queries">
        {often.map(([name, words]) => (
          <Link
            key={name}
            href={withQuery({ q: words || null, after: null })}
            {...(query === words ? { "aria-current": "true" as const } : {})}
          >
            {name}
          </Link>
        ))}
      </span>
      <div id="query-help" class="query-help" role="status">
        {wrong && <span class="bad">{wrong}</span>}
      </div>
      <details class="query-words">
        <summary>Query syntax</summary>
        <dl>
          <dt>
            <code>msf*</code>
          </dt>
          <dd>
            name begins with msf; without <code>*</code> or <code>?</code>: name contains it
          </dd>
          <dt>
            <code>owner:vera</code> <code>state:failed</code>
          </dt>
          <dd>states: active, running, waiting, paused, completed, incomplete, failed, held, cancelled</dd>
          <dt>
            <code>tag:paper</code> <code>is:pinned</code> <code>is:archived</code>
          </dt>
          <dd>
            a whole tag, or with <code>*</code> its beginning; archived sweeps are left out unless asked for
          </dd>
          <dt>
            <code>rows&gt;20</code>
          </dt>
          <dd>
            operators: &gt; &lt; &gt;= &lt;= = !=; keys: rows, seeds, trials, queued, running, failed, held,
            missing, done (percent), priority, gpu_hours, age (30m, 12h, 7d, 2w)
          </dd>
          <dt>
            <code>acc&gt;75</code>
          </dt>
          <dd>any row's mean in column acc, in the table's unit</dd>
          <dt>
            <code>-state:completed</code>
          </dt>
          <dd>does not match</dd>
        </dl>
      </details>
    </search>
  );
}
