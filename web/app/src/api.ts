// SPDX-License-Identifier: Apache-2.0
import { immutableJSONPatch, type JSONPatchDocument } from "immutable-json-patch";

/** What the server answers instead of data, or that it did not answer at all (status 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
/** Whatever was thrown, to be shown as the API's own errors are. */
export function asApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(0, "UNKNOWN", messageOf(error));
}

const kEnded = new EventTarget();
/** Calls `tell` with the reason when the session has ended. */
export function onSignedOut(tell: (why: string) => void): void {
  kEnded.addEventListener("ended", (event) => tell((event as CustomEvent<string>).detail));
}

const kNotModified = 304;
const kPatch = 226; // IM Used

async function request(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(`/api/v1${path}`, init);
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError(0, "UNAVAILABLE", "The server does not answer.");
  }
  if (response.ok || response.status === kNotModified) return response;
  const said = await response.json().catch(() => ({}));
  if (response.status === 401)
    kEnded.dispatchEvent(new CustomEvent("ended", { detail: "the session has ended" }));
  throw new ApiError(
    response.status,
    said.code ?? "UNKNOWN",
    said.message ?? `HTTP status ${response.status}`,
  );
}

/** One read of the API: `path` below /api/v1. Throws ApiError. */
export async function get<T>(path: string, signal: AbortSignal): Promise<T> {
  return (await request(path, { signal })).json() as Promise<T>;
}

/** Calls a method: `path` below /api/v1. Throws ApiError. */
export async function post<T>(path: string, body: object, signal?: AbortSignal): Promise<T> {
  const response = await request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal: signal ?? null,
  });
  return response.json() as Promise<T>;
}

/** What is known of an address, to be brought up to date. */
export interface Known<T> {
  data: T;
  etag: string;
}

/**
 * The same, of which much may be known already: then what changed since travels alone (RFC 3229), and what did not change of `data`
 * is the same object as before. Throws ApiError.
 */
export async function getAgain<T>(
  path: string,
  known: Known<T> | undefined,
  signal: AbortSignal,
): Promise<Known<T>> {
  // a first read uses the browser's cache, which knows nothing of patches
  const asked: Record<string, string> = known?.etag
    ? { "A-IM": "json-patch", "If-None-Match": known.etag }
    : {};
  const response = await request(path, { signal, headers: asked });
  if (response.status === kNotModified && known) return known;
  const etag = response.headers.get("ETag") ?? "";
  const content: unknown = await response.json();
  if (response.status !== kPatch) return { data: content as T, etag };
  if (response.headers.get("Delta-Base") !== known?.etag.replace(/^W\//, ""))
    throw new ApiError(kPatch, "INTERNAL", "The server sent a patch for another version.");
  return { data: immutableJSONPatch(known!.data, content as JSONPatchDocument) as T, etag };
}

/** A read that answers text. Throws ApiError. */
export async function getText(path: string, signal: AbortSignal): Promise<string> {
  return (await request(path, { signal })).text();
}

/** Ends the session, and goes to the sign-in page. */
export async function signOut(): Promise<void> {
  await fetch("/sign-out", { method: "POST" }).catch(() => undefined);
  location.assign("/sign-in");
}

export interface LogChunk {
  bytes: Uint8Array<ArrayBuffer>;
  /** How long the log is by now. */
  total: number;
}

/** A run's log from a byte offset on; at most what the server gives at once. */
export async function getLog(run: number, offset: number, signal: AbortSignal): Promise<LogChunk> {
  const response = await request(`/runs/${run}/log?offset=${offset}`, { signal });
  const bytes = new Uint8Array(await response.arrayBuffer());
  return { bytes, total: Number(response.headers.get("X-Log-Bytes") ?? offset + bytes.length) };
}
