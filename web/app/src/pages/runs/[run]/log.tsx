// SPDX-License-Identifier: Apache-2.0
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { asApiError, getLog, messageOf, type ApiError } from "../../../api";
import { ErrorNotice } from "../../../components/notice";
import { bytes as byteText, whole as count } from "../../../format";
import { find, firstError, logSpans, type Place } from "../../../log_text";
import { runOnChange } from "../../../resource";
import { saveFile } from "../../../save_file";
import { Link, navigate, useAddress, withQuery } from "../../../router";

const kTailBytes = 64 * 1024;
/** What is shown of a long log at once, from the offset in the address on. */
const kWindowBytes = 512 * 1024;
/** Beyond this the oldest lines leave the page. */
const kMostCharacters = 1_000_000;

/** The run's log in its colours: its end, which grows as the run does, or a part of it from any byte on. */
export function Log({ run, bytes, ended }: { run: number; bytes: number; ended: boolean }) {
  const query = useAddress().searchParams;
  const asked = query.get("log");
  const from = asked !== null && /^\d+$/.test(asked) ? Math.min(Number(asked), bytes) : undefined;
  const isEnd = from === undefined;
  const follow = isEnd && query.get("follow") !== "off";
  const words = query.get("find") ?? "";
  const part = useLog(run, bytes, from);
  const spans = useMemo(() => logSpans(part.text), [part.text]);
  const found = useMemo(() => find(spans, words), [spans, words]);
  const error = useMemo(() => firstError(spans), [spans]);
  const [current, setCurrent] = useState(0);
  const box = useRef<HTMLPreElement>(null);

  useLayoutEffect(() => {
    if (follow && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [part.text, follow]);
  const show = (place: Place | undefined, selected: boolean) => {
    if (!place || !box.current) return;
    if (follow) navigate(withQuery({ follow: "off" }));
    bringIntoView(box.current, place, selected);
  };
  const go = (to: number) => {
    const at = (to + found.places.length) % found.places.length;
    setCurrent(at);
    show(found.places[at], false);
  };
  useLayoutEffect(() => {
    setCurrent(0);
    if (words) show(found.places[0], false);
  }, [words]);

  return (
    <>
      <div class="controls">
        <label>
          Find
          <input
            type="search"
            value={words}
            onInput={(event) => navigate(withQuery({ find: event.currentTarget.value || null }), "replace")}
            onKeyDown={(event) => {
              if (event.key !== "Enter" || found.places.length === 0) return;
              event.preventDefault();
              go(current + (event.shiftKey ? -1 : 1));
            }}
          />
        </label>
        {words && (
          <span class="muted" role="status">
            {found.places.length === 0
              ? "not found in this part"
              : `${count(current + 1)} of ${found.more ? "the first " : ""}${count(found.places.length)}; Enter: next, Shift+Enter: previous`}
          </span>
        )}
        {error && (
          <button type="button" onClick={() => show(error, true)}>
            Jump to the first error
          </button>
        )}
        {isEnd && (
          <Link
            class="button"
            href={withQuery({ follow: follow ? "off" : null })}
            aria-pressed={follow}
            role="button"
          >
            {follow ? "Following the end" : "Follow the end"}
          </Link>
        )}
        {bytes > 0 && <Download run={run} bytes={bytes} />}
      </div>
      {(part.from > 0 || (!isEnd && part.to < bytes)) && (
        <nav class="controls" aria-label="Parts of the log">
          <span class="muted">
            {isEnd
              ? `The last ${byteText(part.to - part.from)} of ${byteText(part.to)}`
              : `${byteText(part.to - part.from)} from byte ${count(part.from)} on, of ${byteText(bytes)}`}
          </span>
          {part.from > 0 && <Link href={withQuery({ log: "0" })}>Beginning</Link>}
          {part.from > 0 && (
            <Link href={withQuery({ log: String(Math.max(0, part.from - kWindowBytes)) })}>Earlier</Link>
          )}
          {!isEnd && part.to < bytes && <Link href={withQuery({ log: String(part.to) })}>Later</Link>}
          {!isEnd && <Link href={withQuery({ log: null })}>End</Link>}
        </nav>
      )}
      {part.error && <ErrorNotice error={part.error} what="The log" />}
      <pre
        class="panel log"
        ref={box}
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label={`Log of run ${run}`}
      >
        {found.spans.map(({ text, style, match }) =>
          match !== undefined ? (
            <mark class={style} aria-current={match === current ? "true" : undefined}>
              {text}
            </mark>
          ) : style ? (
            <span class={style}>{text}</span>
          ) : (
            text
          ),
        )}
        {spans.length === 0 && (
          <span class="muted">{ended ? "The run wrote no log." : "The run has written no log yet."}</span>
        )}
      </pre>
    </>
  );
}

interface Part {
  text: string;
  /** Bytes of the log. */
  from: number;
  to: number;
  error?: ApiError;
}

/** A window of the log from a byte on, or its end, as it grows. */
function useLog(run: number, bytes: number, from: number | undefined): Part {
  const nothing = (at: number): Part => ({ text: "", from: at, to: at });
  const [part, setPart] = useState(() => nothing(from ?? 0));
  useEffect(() => {
    const begin = from ?? Math.max(0, bytes - kTailBytes);
    const end = from === undefined ? Infinity : from + kWindowBytes;
    let isLineCut = begin > 0; // it may begin within one: then up to the next; where it does not, behind what ends the one before
    let offset = isLineCut ? begin - 1 : 0;
    const decoder = new TextDecoder(); // a character may be split between two chunks
    setPart(nothing(begin));
    return runOnChange(
      (change) => change.run === run || change.run === 0,
      async (signal) => {
        try {
          for (let more = offset < end; more;) {
            const chunk = await getLog(run, offset, signal);
            offset += chunk.bytes.length;
            more = chunk.bytes.length > 0 && offset < Math.min(end, chunk.total);
            let added = decoder.decode(chunk.bytes, { stream: true });
            if (isLineCut && added.includes("\n")) {
              added = added.slice(added.indexOf("\n") + 1);
              isLineCut = false;
            }
            const to = offset;
            const isCut = offset >= end && offset < chunk.total;
            setPart((old) => {
              const next = newest({ text: old.text + added, from: old.from, to });
              return isCut ? wholeLines(next) : next;
            });
          }
          return true;
        } catch (failure) {
          if (signal.aborted) return false;
          setPart((old) => ({ ...old, error: asApiError(failure) }));
          return false;
        }
      },
    );
  }, [run, from]);
  return part;
}

/** Without the oldest characters, where there are too many. */
function newest(part: Part): Part {
  if (part.text.length <= kMostCharacters) return part;
  const text = part.text.slice(-kMostCharacters);
  return { ...part, text, from: part.to - new TextEncoder().encode(text).length };
}

/** Without its last line, which ends in the next part. */
function wholeLines(part: Part): Part {
  const end = part.text.lastIndexOf("\n") + 1;
  if (end === 0) return part;
  const rest = new TextEncoder().encode(part.text.slice(end)).length;
  return { ...part, text: part.text.slice(0, end), to: part.to - rest };
}

/** Scrolls the box, and not the page, so that some of its characters are seen. */
function bringIntoView(box: HTMLElement, { from, to }: Place, selected: boolean): void {
  const range = document.createRange();
  const texts = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
  let at = 0;
  for (let node = texts.nextNode() as Text | null; node; node = texts.nextNode() as Text | null) {
    if (from >= at && from <= at + node.length) range.setStart(node, from - at);
    if (to >= at && to <= at + node.length) range.setEnd(node, to - at);
    at += node.length;
  }
  const { top } = range.getBoundingClientRect();
  box.scrollTop += top - box.getBoundingClientRect().top - box.clientHeight / 3;
  if (!selected) return;
  const selection = getSelection();
  selection?.removeAllRanges();
  selection?.addRange(range);
}

/** The whole log as a file. */
function Download({ run, bytes }: { run: number; bytes: number }) {
  const [done, setDone] = useState<number>();
  const [error, setError] = useState<string>();
  const abort = useRef(new AbortController());
  useEffect(() => () => abort.current.abort(), []);
  const save = async () => {
    setDone(0);
    setError(undefined);
    try {
      const chunks: Uint8Array<ArrayBuffer>[] = [];
      for (let offset = 0, total = 1; offset < total;) {
        const chunk = await getLog(run, offset, abort.current.signal);
        if (chunk.bytes.length === 0) break;
        chunks.push(chunk.bytes);
        offset += chunk.bytes.length;
        total = chunk.total;
        setDone(offset / total);
      }
      saveFile(`run-${run}.log`, chunks, "text/plain");
    } catch (failure) {
      if (!abort.current.signal.aborted) setError(messageOf(failure));
    }
    setDone(undefined);
  };
  return (
    <>
      <button type="button" disabled={done !== undefined} onClick={() => void save()}>
        {done === undefined ? `Download (${byteText(bytes)})` : `Downloading… ${Math.floor(100 * done)} %`}
      </button>
      {error && <span role="alert">The log could not be downloaded: {error}</span>}
    </>
  );
}
