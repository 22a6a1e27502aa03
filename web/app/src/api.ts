// SPDX-License-Identifier: Apache-2.0

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

const kEnded = new EventTarget();
/** Calls `tell` with the reason when the server says that nobody is signed in here any more. */
export function onSignedOut(tell: (why: string) => void): void {
  kEnded.addEventListener("ended", (event) => tell((event as CustomEvent<string>).detail));
}

async function request(path: string, signal: AbortSignal): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(`/api/v1${path}`, { signal });
  } catch (error) {
    if (signal.aborted) throw error;
    throw new ApiError(0, "UNAVAILABLE", "The dashboard's server does not answer.");
  }
  if (response.ok) return response;
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
  return (await request(path, signal)).json() as Promise<T>;
}

/** Ends the session, and leads to the page that begins one. */
export async function signOut(): Promise<void> {
  await fetch("/sign-out", { method: "POST" }).catch(() => undefined);
  location.assign("/sign-in");
}

export interface LogChunk {
  bytes: Uint8Array;
  /** How long the log is by now. */
  total: number;
}

/** A run's log from a byte offset on; at most what the server gives at once. */
export async function getLog(run: number, offset: number, signal: AbortSignal): Promise<LogChunk> {
  const response = await request(`/runs/${run}/log?offset=${offset}`, signal);
  const bytes = new Uint8Array(await response.arrayBuffer());
  return { bytes, total: Number(response.headers.get("X-Log-Bytes") ?? offset + bytes.length) };
}
