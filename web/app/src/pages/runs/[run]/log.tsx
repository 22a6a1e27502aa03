// SPDX-License-Identifier: Apache-2.0
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, getLog } from "../../../api";
import { ErrorNotice } from "../../../components/notice";
import { bytes as byteText, whole as count } from "../../../format";
import { readableLog } from "../../../log_text";
import { runOnChange } from "../../../resource";
import { Link, useAddress, withQuery } from "../../../router";

const kTailBytes = 64 * 1024;
/** Beyond this the oldest lines leave the page. */
const kMostCharacters = 1_000_000;

/** The end of the run's log, growing as the run does; following keeps the newest line in view. */
export function Log({ run, bytes, ended }: { run: number; bytes: number; ended: boolean }) {
  const query = useAddress().searchParams;
  const follow = query.get("follow") !== "off";
  const whole = query.get("log") === "all";
  const [text, setText] = useState("");
  const [cut, setCut] = useState(false);
  const readable = useMemo(() => readableLog(text), [text]);
  const [error, setError] = useState<ApiError>();
  const box = useRef<HTMLPreElement>(null);
  const from = useRef(0);

  useEffect(() => {
    let offset = whole ? 0 : Math.max(0, bytes - kTailBytes);
    from.current = offset;
    const decoder = new TextDecoder(); // a character may be split between two chunks
    setText("");
    setCut(false);
    let length = 0;
    return runOnChange(
      (change) => change.run === run || change.run === 0,
      async (signal) => {
        try {
          for (let more = true; more;) {
            const chunk = await getLog(run, offset, signal);
            offset += chunk.bytes.length;
            more = chunk.bytes.length > 0 && offset < chunk.total;
            const added = decoder.decode(chunk.bytes, { stream: true });
            if (!added) continue;
            length += added.length;
            setCut(length > kMostCharacters);
            setText((old) => (old + added).slice(-kMostCharacters));
          }
          setError(undefined);
        } catch (failure) {
          if (!signal.aborted)
            setError(failure instanceof ApiError ? failure : new ApiError(0, "UNKNOWN", String(failure)));
        }
      },
    );
  }, [run, whole]);

  useLayoutEffect(() => {
    if (follow && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text, follow]);

  return (
    <>
      <div class="controls">
        <Link
          class="button"
          href={withQuery({ follow: follow ? "off" : null })}
          aria-pressed={follow}
          role="button"
        >
          {follow ? "Following the end" : "Follow the end"}
        </Link>
        {cut && (
          <span class="muted">
            The last {count(kMostCharacters)} characters; <code>ablate logs {run}</code> prints all of them.
          </span>
        )}
        {from.current > 0 && !whole && !cut && (
          <span class="muted">
            The last {byteText(bytes - from.current)} of {byteText(bytes)}.{" "}
            <Link href={withQuery({ log: "all" })}>Show all</Link>
          </span>
        )}
      </div>
      {error && <ErrorNotice error={error} what="The log" />}
      <pre
        class="panel log"
        ref={box}
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label={`Log of run ${run}`}
      >
        {readable || (
          <span class="muted">
            {ended ? "The run wrote nothing to its log." : "The run has not written anything yet."}
          </span>
        )}
      </pre>
    </>
  );
}
