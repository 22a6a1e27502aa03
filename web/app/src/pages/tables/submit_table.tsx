// SPDX-License-Identifier: Apache-2.0
import { useRef, useState } from "preact/hooks";
import { act } from "../../acting/act";
import { AskingButton } from "../../acting/button";
import { ownerOf, useCaller, whyNot } from "../../acting/caller";
import { get, messageOf } from "../../api";
import type { PaperFile, PaperTable, SweepFile, SweepPlan } from "../../generated/ablate";
import { useResource } from "../../resource";
import { sweepPath } from "../../router";
import { Plan } from "../submit/plan";
import { submittedText } from "../submit/submitted";

const kFull = "full";
const fileOf = (table: PaperTable, scale: string): string =>
  `/papers/${encodeURIComponent(table.paper)}?table=${encodeURIComponent(table.table)}&scale=${encodeURIComponent(scale)}`;

/** What the server says that the table would run at a scale. */
interface Looked {
  file?: SweepFile;
  plan?: SweepPlan;
  error?: string;
}

/** Submits a paper's table at a scale, once its plan was seen. */
export function SubmitTable({ table, name }: { table: PaperTable; name: string }) {
  const caller = useCaller();
  if (!caller || table.trained === 0) return null;
  const why = whyNot(caller, ["Submit"]);
  if (why) return <p class="muted may-not">{why}</p>;
  return <Form table={table} name={name} owner={ownerOf(caller)} />;
}

function Form({ table, name, owner }: { table: PaperTable; name: string; owner: string | undefined }) {
  const { data } = useResource<PaperFile>(fileOf(table, kFull), () => false);
  const [scale, setScale] = useState(kFull);
  const [looked, setLooked] = useState<Looked>({});
  const asking = useRef<AbortController>(undefined);
  const look = async (): Promise<void> => {
    asking.current?.abort();
    const { signal } = (asking.current = new AbortController());
    setLooked({});
    try {
      const { file } = await get<PaperFile>(fileOf(table, scale), signal);
      const plan = await act("Plan", { file }, signal);
      if (!signal.aborted) setLooked({ file, plan });
    } catch (error) {
      if (!signal.aborted) setLooked({ error: messageOf(error) });
    }
  };
  return (
    <div class="actions" role="group" aria-label={`Submit ${name}`}>
      <label>
        Scale{" "}
        <select value={scale} onChange={({ currentTarget }) => setScale(currentTarget.value)}>
          {[kFull, ...(data?.scales ?? [])].map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </label>
      <AskingButton
        label="Submit…"
        name={`Submit ${name}…`}
        title={scale === kFull ? `Submit ${name}?` : `Submit ${name} at scale ${scale}?`}
        verb="Submit"
        wide
        onOpen={() => void look()}
        run={async () => {
          const { file } = looked;
          if (!file) throw new Error(looked.error ? "Not submitted." : "The plan is not there yet.");
          const done = await act("Submit", { file, ...(owner ? { owner } : {}) });
          const sweep = done.sweep.name;
          return { text: submittedText(done), link: { href: sweepPath(sweep), label: `Show ${sweep}` } };
        }}
      >
        {looked.plan ? (
          <Plan plan={looked.plan} busy={false} extends={false} />
        ) : looked.error ? (
          <p class="action-error" role="alert">
            {looked.error}
          </p>
        ) : (
          <p class="muted" role="status">
            Planning…
          </p>
        )}
      </AskingButton>
    </div>
  );
}
