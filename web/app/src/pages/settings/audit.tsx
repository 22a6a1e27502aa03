// SPDX-License-Identifier: Apache-2.0
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { Loaded, Notice } from "../../components/notice";
import { ColumnHead, TablePanel } from "../../components/table_panel";
import { moment } from "../../format";
import type { AuditLine } from "../../generated/ablate";
import { Link, navigate, useAddress, withQuery } from "../../router";
import { useAsked } from "./asked";

const kShown = 50;
/** Requests that change something, for the field that filters by one: others may be typed. */
const kRequests = [
  "AdjustSweep",
  "CancelSweep",
  "CancelTrial",
  "CreateToken",
  "DrainWorker",
  "ExtendSweep",
  "Join",
  "PauseFleetQueue",
  "PauseSweep",
  "PushData",
  "PutProbes",
  "RemoveData",
  "RemoveSweep",
  "RenameSweep",
  "AnnotateSweep",
  "RepinData",
  "ResumeSweep",
  "RetrySweep",
  "RevokeToken",
  "SignIn",
  "Submit",
];

/** "CancelSweep (dashboard)" without where it came from. */
const requestOf = (what: string): string => what.replace(/ \(dashboard\)$/, "");

/** Who changed what, and what was refused. The address: `?who=`, `?what=`, and `?before=` the last line of the page before. */
export function Audit({ times, again }: { times: number; again: () => void }) {
  const query = useAddress().searchParams;
  const [who, what] = [query.get("who") ?? "", query.get("what") ?? ""];
  const before = /^\d{1,18}$/.test(query.get("before") ?? "") ? query.get("before")! : "";
  const answer = useAsked("ListAudit", { who, what, before: before || "0", most: kShown + 1 }, times);
  return (
    <>
      <Filter who={who} what={what} again={again} />
      <Loaded of={answer} what="The audit" lines={6}>
        {({ lines }) => (
          <>
            {lines.length === 0 ? (
              <Notice kind="empty" title={nothing(who, what, before)} />
            ) : (
              <AuditTable lines={lines.slice(0, kShown)} />
            )}
            {(before || lines.length > kShown) && (
              <nav class="pager" aria-label="Pages of the audit">
                {before && <Link href={withQuery({ before: null }, "#audit")}>Newest</Link>}
                {lines.length > kShown && (
                  <Link href={withQuery({ before: lines[kShown - 1]!.key }, "#audit")}>Older</Link>
                )}
              </nav>
            )}
          </>
        )}
      </Loaded>
    </>
  );
}

function nothing(who: string, what: string, before: string): string {
  if (who || what) return "No line matches.";
  return before ? "No older lines." : "Nobody has changed anything yet.";
}

function Filter({ who, what, again }: { who: string; what: string; again: () => void }) {
  const known = useId();
  const form = useRef<HTMLFormElement>(null);
  // what is being typed stays until the address changes
  useLayoutEffect(() => {
    for (const [name, text] of Object.entries({ who, what }))
      (form.current!.elements.namedItem(name) as HTMLInputElement).value = text;
  }, [who, what]);
  const submit = (event: Event): void => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget as HTMLFormElement);
    const text = (name: string): string | null => String(fields.get(name) ?? "").trim() || null;
    navigate(withQuery({ who: text("who"), what: text("what"), before: null }));
    again();
  };
  return (
    <form class="controls" ref={form} onSubmit={submit} role="search" aria-label="Filter the audit">
      <label>
        Person
        <input type="search" name="who" autocomplete="off" maxLength={100} />
      </label>
      <label>
        Request
        <input type="search" name="what" autocomplete="off" maxLength={60} list={known} />
      </label>
      <datalist id={known}>
        {kRequests.map((request) => (
          <option key={request} value={request} />
        ))}
      </datalist>
      <button type="submit">Show</button>
      {(who || what) && <Link href={withQuery({ who: null, what: null, before: null })}>Everything</Link>}
    </form>
  );
}

function AuditTable({ lines }: { lines: AuditLine[] }) {
  return (
    <TablePanel
      caption="Changes and refusals, newest first"
      head={
        <>
          <ColumnHead>When</ColumnHead>
          <ColumnHead>Person</ColumnHead>
          <ColumnHead>Request</ColumnHead>
          <ColumnHead>On what</ColumnHead>
          <ColumnHead>Outcome</ColumnHead>
          <ColumnHead>Token</ColumnHead>
        </>
      }
    >
      {lines.map((line) => (
        <tr key={line.key}>
          <th scope="row" class="audit-when">
            <time dateTime={line.time}>{moment(line.time)}</time>
          </th>
          <td>
            {line.who ? (
              <Link href={withQuery({ who: line.who, before: null })} title={`Only ${line.who}`}>
                <span class="name">{line.who}</span>
              </Link>
            ) : (
              <span class="muted">–</span>
            )}
          </td>
          <td class="audit-what">
            <Link href={withQuery({ what: requestOf(line.what), before: null })}>{requestOf(line.what)}</Link>
            {line.what !== requestOf(line.what) && <span class="tag">dashboard</span>}
          </td>
          <td>
            <span class="name" title={line.target}>
              {line.target || "–"}
            </span>
          </td>
          <td>
            {line.outcome === "ok" ? (
              <span class="state state-completed">ok</span>
            ) : (
              <span class="audit-outcome bad">{line.outcome}</span>
            )}
          </td>
          <td>{line.token ? <code>{line.token}</code> : <span class="muted">–</span>}</td>
        </tr>
      ))}
    </TablePanel>
  );
}
