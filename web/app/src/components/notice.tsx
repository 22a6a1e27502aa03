// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import type { ApiError } from "../api";
import { useLiveState } from "../live/live";
import type { Resource } from "../resource";

/** A page or panel with nothing to show yet says so, and what to do about it. */
export function Notice(props: { kind: "empty" | "error"; title: string; children?: ComponentChildren }) {
  return (
    <div class={`notice notice-${props.kind}`} role={props.kind === "error" ? "alert" : undefined}>
      <p class="notice-title">{props.title}</p>
      {props.children && <div class="notice-text">{props.children}</div>}
    </div>
  );
}

export function ErrorNotice({ error, what }: { error: ApiError; what: string }) {
  return (
    <Notice kind="error" title={`${what} could not be read`}>
      {error.message}
    </Notice>
  );
}

/**
 * The states that every resource has: loading, failed, failed with older data still there, and there. That the server is away the bar
 * says: above data that are still there nothing is added.
 */
export function Loaded<T>(props: {
  of: Resource<T>;
  what: string;
  lines?: number;
  children: (data: T) => ComponentChildren;
}) {
  const { data, error } = props.of;
  const isAway = useLiveState().kind === "lost" && error?.code === "UNAVAILABLE";
  return (
    <>
      {error && !(isAway && data !== undefined) && <ErrorNotice error={error} what={props.what} />}
      {data !== undefined && props.children(data)}
      {data === undefined && !error && (
        <div class="skeleton" role="status" aria-label={`Loading ${props.what.toLowerCase()}`}>
          {Array.from({ length: props.lines ?? 4 }, (_, i) => (
            <span key={i} />
          ))}
        </div>
      )}
    </>
  );
}
