// SPDX-License-Identifier: Apache-2.0
import { Fragment } from "preact";
import { useMemo, useState } from "preact/hooks";
import { ScrollPanel } from "../../../../components/table_panel";
import { plural, whole } from "../../../../format";
import { cutOf, difference, partsOf, piecesOf, type Difference, type Line, type Piece } from "./difference";

interface Side {
  revision: number;
  text: string;
}

/** Lines of a piece that are shown at first, and that a click adds. */
const kShown = 400;
const kStep = 1000;

const kSigns = { "+": "added", "-": "removed", " ": "" };

/** Two texts line by line: what was removed and added, with unchanged stretches folded. */
export function DifferenceView({ before, after }: { before: Side; after: Side }) {
  const found = useMemo(() => difference(before.text, after.text), [before.text, after.text]);
  const pieces = useMemo(() => piecesOf(found.lines), [found]);
  // of a piece: how many of its lines are shown, where that was asked for; and the first of the last click, which gets the focus
  const [shown, setShown] = useState<Record<number, number>>({});
  const [fresh, setFresh] = useState("");
  if (before.text === after.text)
    return (
      <p class="muted">
        The files of revisions {before.revision} and {after.revision} are the same.
      </p>
    );
  const endings = found.lines.some(({ end, other }) => other && (end === "\r\n") !== (other.end === "\r\n"));
  return (
    <>
      <p>
        From revision {before.revision} to {after.revision}: {plural(found.added, "line")} added,{" "}
        {whole(found.removed)} removed. <Notes of={found} />
      </p>
      <ScrollPanel class="diff">
        <table>
          <caption class="sr-only">
            What differs from revision {before.revision} to revision {after.revision}
          </caption>
          <thead class="sr-only">
            <tr>
              <th scope="col">Line of revision {before.revision}</th>
              <th scope="col">Line of revision {after.revision}</th>
              <th scope="col">Change</th>
              <th scope="col">Text</th>
            </tr>
          </thead>
          <tbody>
            {pieces.map((piece, i) => {
              const some = shown[i] ?? (piece.folded ? 0 : kShown);
              return (
                <Fragment key={i}>
                  {piece.lines.slice(0, some).map((line, at) => (
                    <Row
                      key={at}
                      line={line}
                      endings={endings}
                      {...(fresh === `${i}/${at}` && { fresh: true })}
                    />
                  ))}
                  {piece.lines.length > some && (
                    <Fold
                      piece={piece}
                      shown={some}
                      more={() => {
                        setShown({ ...shown, [i]: some + kStep });
                        setFresh(`${i}/${some}`);
                      }}
                    />
                  )}
                </Fragment>
              );
            })}
          </tbody>
        </table>
      </ScrollPanel>
    </>
  );
}

function Notes({ of }: { of: Difference }) {
  return (
    <span class="muted">
      {of.ends > 0 &&
        `${plural(of.ends, "line")} ${of.ends === 1 ? "differs" : "differ"} only in what ends them. `}
      {of.coarse && "Where too much differs, all of it is shown as removed and added."}
    </span>
  );
}

function Fold({ piece, shown, more }: { piece: Piece; shown: number; more: () => void }) {
  const left = piece.lines.length - shown;
  const what = piece.folded ? plural(left, "unchanged line") : plural(left, "line");
  return (
    <tr class="diff-fold">
      <td colSpan={4}>
        <button type="button" class="quiet" onClick={more}>
          {left > kStep ? `Show ${whole(kStep)} of ${what}` : `Show ${what}`}
        </button>
      </td>
    </tr>
  );
}

/** `endings`: the two differ in carriage returns, which are shown then. */
function Row({ line, endings, fresh }: { line: Line; endings: boolean; fresh?: boolean }) {
  const { text, before, behind } = cutOf(line);
  const parts = before + behind === 0 ? partsOf(line) : undefined;
  return (
    <tr
      class={line.sign === "+" ? "diff-added" : line.sign === "-" ? "diff-removed" : ""}
      {...(fresh && { tabIndex: -1, ref: (row: HTMLElement | null) => row?.focus({ preventScroll: true }) })}
    >
      <td class="diff-number">{line.before}</td>
      <td class="diff-number">{line.after}</td>
      <td class="diff-sign">
        <span aria-hidden="true">{line.sign === "-" ? "−" : line.sign}</span>
        <span class="sr-only">{kSigns[line.sign]}</span>
      </td>
      <td class="diff-text">
        {before > 0 && <Left count={before} />}
        {parts
          ? parts.map(({ text: part, changed }, i) =>
              !changed ? part : line.sign === "+" ? <ins key={i}>{part}</ins> : <del key={i}>{part}</del>,
            )
          : text}
        {behind > 0 && <Left count={behind} />}
        {endings && line.end === "\r\n" && (
          <span class="muted" title="A carriage return before the line feed">
            ␍
          </span>
        )}
        {line.end === "" && <span class="diff-note">no line feed at the end of the file</span>}
      </td>
    </tr>
  );
}

function Left({ count }: { count: number }) {
  return <span class="diff-note">{plural(count, "character")} not shown</span>;
}
