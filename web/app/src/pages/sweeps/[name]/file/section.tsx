// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { messageOf } from "../../../../api";
import { useBrief } from "../../../../brief";
import { toClipboard } from "../../../../clipboard";
import { Loaded } from "../../../../components/notice";
import type { SweepDetail } from "../../../../generated/ablate";
import { useLate } from "../../../../late";
import { useAddress } from "../../../../router";
import { saveFile } from "../../../../save_file";
import { fileChoiceOf, fileName } from "./choice";

/** The sweep's file, folded; of a sweep that was extended, with the revisions that it has had. */
export function FileSection({ sweep }: { sweep: SweepDetail }) {
  const newest = sweep.summary.revision;
  const chosen = fileChoiceOf(useAddress().searchParams.get("file"), newest);
  const [open, setOpen] = useState(chosen !== undefined);
  return (
    <details id="file" class="source" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        Sweep file{sweep.file && <code>{sweep.file}</code>}
        {newest > 1 && <span class="tag">revision {newest}</span>}
      </summary>
      {open && newest === 1 && (
        <>
          <div class="actions">
            <TakeFile
              name={fileName(sweep.summary.name, sweep.file)}
              text={() => Promise.resolve(sweep.text)}
              of=""
            />
          </div>
          <pre tabIndex={0}>{sweep.text}</pre>
        </>
      )}
      {open && newest > 1 && <Late sweep={sweep} />}
    </details>
  );
}

const revisions = () => import("./revisions");

function Late({ sweep }: { sweep: SweepDetail }) {
  return (
    <Loaded of={useLate(revisions)} what="The revisions" lines={6}>
      {(Revisions) => <Revisions sweep={sweep} take={TakeFile} />}
    </Loaded>
  );
}

export interface TakeProps {
  name: string;
  text: () => Promise<string>;
  /** What is behind the verbs for those who hear them: " revision 2". */
  of: string;
}

/** A file, into the clipboard or as it is. */
export function TakeFile({ name, text, of }: TakeProps) {
  const [said, setSaid] = useBrief({ text: "" });
  const take = async (verb: string, how: () => Promise<void>): Promise<void> => {
    try {
      await how();
      setSaid({ text: verb });
    } catch (error) {
      setSaid({ text: messageOf(error) });
    }
  };
  return (
    <span class="take">
      <button
        type="button"
        aria-label={`Copy${of}`}
        onClick={() => void take("Copied.", () => toClipboard(text()))}
      >
        Copy
      </button>
      <button
        type="button"
        aria-label={`Download${of}`}
        onClick={() => void take("", async () => saveFile(name, [await text()], "application/yaml"))}
      >
        Download
      </button>
      <span role="status" class="muted">
        {said.text}
      </span>
    </span>
  );
}
