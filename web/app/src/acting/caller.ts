// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import { get } from "../api";
import type { Caller } from "../generated/ablate";
import { live } from "../live/live";

let known: Caller | undefined;
let asked: Promise<void> | undefined;
const listeners = new Set<(caller: Caller | undefined) => void>();

function ask(): Promise<void> {
  asked ??= get<Caller>("/whoami", new AbortController().signal)
    .then((caller) => {
      known = caller;
      listeners.forEach((listener) => listener(caller));
    })
    .catch(() => undefined) // no server, or nobody is signed in: the bar says so
    .finally(() => (asked = undefined));
  return asked;
}

let wasAway = false;
live.onState(({ kind }) => {
  // after a restart the caller may have another role
  if (kind === "live" && wasAway) void ask();
  wasAway = kind !== "live" && (wasAway || kind !== "connecting");
});

/** Who views this page, and what they may do; undefined until the server has answered. The page asks once. */
export function useCaller(): Caller | undefined {
  const [caller, setCaller] = useState(known);
  useEffect(() => {
    listeners.add(setCaller);
    if (known) setCaller(known);
    else void ask();
    return () => void listeners.delete(setCaller);
  }, []);
  return caller;
}

/** Why this caller may call none of these methods, as a sentence; empty if they may call one, or it is not known yet. */
export function whyNot(caller: Caller | undefined, methods: string[]): string {
  if (!caller || methods.some((method) => caller.may.includes(method))) return "";
  if (caller.read_only) return `Read only: ${caller.read_only}.`;
  const role = caller.role.replace("TOKEN_ROLE_", "").toLowerCase();
  return `Role ${role} can only view: to make changes, sign in with a token of another role, created by an admin.`;
}

/** Who a request names as the owner: without sign-in the server does not know. */
export function ownerOf(caller: Caller | undefined): string | undefined {
  return caller && !caller.token ? caller.owner : undefined;
}
