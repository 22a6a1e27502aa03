// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import { keep, kept } from "../../kept";

const kKey = "ablate:looked";
const kFirstLook = 24 * 3600 * 1000; // on the first visit, failures of the last day

function lastLook(): number | undefined {
  const text = kept("localStorage", kKey) ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/**
 * When failures were last marked as seen, in ms since 1970, and what marks them. All tabs have the same time, and it outlives a reload.
 */
export function useLooked(): [since: number, look: () => void] {
  const [since, setSince] = useState(() => lastLook() ?? Date.now() - kFirstLook);
  useEffect(() => {
    const follow = ({ key }: StorageEvent) => key === kKey && setSince((old) => lastLook() ?? old);
    window.addEventListener("storage", follow);
    return () => window.removeEventListener("storage", follow);
  }, []);
  const look = () => {
    const now = Date.now();
    keep("localStorage", kKey, String(now));
    setSince(now);
  };
  return [since, look];
}
