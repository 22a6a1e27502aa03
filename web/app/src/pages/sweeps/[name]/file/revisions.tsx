// SPDX-License-Identifier: Apache-2.0
import type { ComponentType } from "preact";
import { get } from "../../../../api";
import { Loaded } from "../../../../components/notice";
import { ColumnHead, TablePanel } from "../../../../components/table_panel";
import { moment, whole } from "../../../../format";
import type { SweepDetail, SweepRevision, SweepText } from "../../../../generated/ablate";
import { useResource, type Resource } from "../../../../resource";
import { Link, navigate, useAddress, withQuery } from "../../../../router";
import { fileChoiceOf, fileChoiceText, fileName, type FileChoice } from "./choice";
import { DifferenceView } from "./difference_view";
import type { TakeProps } from "./section";

interface Props {
  sweep: SweepDetail;
  take: ComponentType<TakeProps>;
}

const addressOf = (choice: FileChoice): string => withQuery({ file: fileChoiceText(choice) }, "#file");

/** The revisions of a sweep's file: who made them and when, one of them, and what differs between two. */
export default function Revisions({ sweep, take }: Props) {
  const newest = sweep.summary.revision;
  const choice = fileChoiceOf(useAddress().searchParams.get("file"), newest) ?? { shown: newest };
  const shown = useText(sweep, choice.shown);
  const before = useText(sweep, choice.before);
  return (
    <>
      <Listed sweep={sweep} choice={choice} take={take} />
      <Controls newest={newest} choice={choice} />
      <Loaded of={shown} what={`Revision ${choice.shown}`} lines={6}>
        {(text) =>
          choice.before === undefined ? (
            <pre tabIndex={0} aria-label={`Sweep file, revision ${choice.shown}`}>
              {text}
            </pre>
          ) : (
            <Loaded of={before} what={`Revision ${choice.before}`} lines={6}>
              {(old) => (
                <DifferenceView
                  key={fileChoiceText(choice)}
                  before={{ revision: choice.before!, text: old }}
                  after={{ revision: choice.shown, text }}
                />
              )}
            </Loaded>
          )
        }
      </Loaded>
    </>
  );
}

const textPath = (sweep: string, revision: number): string =>
  `/sweeps/${encodeURIComponent(sweep)}/text?revision=${revision}`;

/** The newest is there already; what others say never changes. */
function useText(sweep: SweepDetail, revision: number | undefined): Resource<string> {
  const isThere = revision === undefined || revision === sweep.summary.revision;
  const path = isThere ? null : textPath(sweep.summary.name, revision);
  const { data, of, error } = useResource<SweepText>(path, () => false);
  if (isThere) return { data: sweep.text };
  return { ...(data && of === path && { data: data.text }), ...(error && { error }) };
}

/** Changes of a revision that are named before the others are folded. */
const kNamed = 3;

function Listed({ sweep, choice, take: Take }: Props & { choice: FileChoice }) {
  const newest = sweep.summary.revision;
  const text = async (revision: number): Promise<string> =>
    revision === newest
      ? sweep.text
      : (await get<SweepText>(textPath(sweep.summary.name, revision), new AbortController().signal)).text;
  return (
    <TablePanel
      caption="Revisions of the file, newest first"
      head={
        <>
          <ColumnHead>Revision</ColumnHead>
          <ColumnHead>When</ColumnHead>
          <ColumnHead>By</ColumnHead>
          <ColumnHead>Changes</ColumnHead>
          <ColumnHead num>New trials</ColumnHead>
          <ColumnHead>
            <span class="sr-only">File</span>
          </ColumnHead>
        </>
      }
    >
      {[...sweep.revisions].reverse().map((each) => (
        <tr key={each.revision}>
          <th scope="row">
            <Link
              href={addressOf({ shown: each.revision })}
              {...(choice.shown === each.revision && { "aria-current": "true" as const })}
              aria-label={`Show revision ${each.revision}`}
            >
              {each.revision}
            </Link>
          </th>
          <td>{each.time && <time dateTime={each.time}>{moment(each.time)}</time>}</td>
          <td>
            <span class="name" title={each.by}>
              {each.by || "–"}
            </span>
          </td>
          <td class="changes">
            <Changes of={each} />
          </td>
          <td class="num">{each.revision === 1 ? "–" : whole(each.new_trials)}</td>
          <td>
            <Take
              name={fileName(
                sweep.summary.name,
                each.file,
                each.revision === newest ? undefined : each.revision,
              )}
              text={() => text(each.revision)}
              of={` revision ${each.revision}`}
            />
          </td>
        </tr>
      ))}
    </TablePanel>
  );
}

function Changes({ of }: { of: SweepRevision }) {
  if (of.revision === 1) return <span class="muted">as it was submitted</span>;
  const lines = (some: string[]) => (
    <ul>
      {some.map((change) => (
        <li key={change}>{change}</li>
      ))}
    </ul>
  );
  const others = of.changes.length - kNamed;
  return (
    <>
      {lines(of.changes.slice(0, others > 1 ? kNamed : undefined))}
      {others > 1 && (
        <details>
          <summary>{whole(others)} more</summary>
          {lines(of.changes.slice(kNamed))}
        </details>
      )}
      <Link href={addressOf({ shown: of.revision, before: of.revision - 1 })}>
        Difference from revision {of.revision - 1}
      </Link>
    </>
  );
}

function Controls({ newest, choice }: { newest: number; choice: FileChoice }) {
  const all = Array.from({ length: newest }, (_, i) => newest - i);
  const go = (to: FileChoice): void => navigate(addressOf(to));
  return (
    <div class="controls">
      <label>
        Revision
        <select
          value={choice.shown}
          onChange={({ currentTarget: { value } }) => {
            const shown = Number(value);
            go(choice.before === undefined || choice.before === shown ? { shown } : { ...choice, shown });
          }}
        >
          {all.map((revision) => (
            <option key={revision} value={revision}>
              {revision}
            </option>
          ))}
        </select>
      </label>
      <label>
        Compared with
        <select
          value={choice.before ?? ""}
          onChange={({ currentTarget: { value } }) =>
            go(value ? { ...choice, before: Number(value) } : { shown: choice.shown })
          }
        >
          <option value="">nothing</option>
          {all
            .filter((revision) => revision !== choice.shown)
            .map((revision) => (
              <option key={revision} value={revision}>
                {revision}
              </option>
            ))}
        </select>
      </label>
    </div>
  );
}
