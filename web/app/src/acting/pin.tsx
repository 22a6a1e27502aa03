// SPDX-License-Identifier: Apache-2.0
import { act } from "./act";
import { ActionButton } from "./button";
import { useCaller } from "./caller";

/** Whether a sweep is pinned, and, for who may change it, the button that does. */
export function Pin({ sweep, pinned }: { sweep: string; pinned: boolean }) {
  const may = useCaller()?.may.includes("AnnotateSweep") ?? false;
  if (!may)
    return pinned ? (
      <span class="pin is-pinned" role="img" aria-label="Pinned" title="Pinned: lists begin with it">
        ★
      </span>
    ) : null;
  return (
    <ActionButton
      quiet
      class={`pin ${pinned ? "is-pinned" : ""}`}
      label={pinned ? "★" : "☆"}
      name={`Pin ${sweep}`}
      pressed={pinned}
      title={pinned ? "Unpin" : "Pin: lists begin with it"}
      run={async () => void (await act("AnnotateSweep", { sweep, pinned: !pinned }))}
    />
  );
}
