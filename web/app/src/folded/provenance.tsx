// SPDX-License-Identifier: Apache-2.0
import { Loaded } from "../components/notice";
import { moment, plural } from "../format";
import type { Provenance as From, ProvenanceResponse } from "../generated/ablate";
import { useResource } from "../resource";

/** Where a sweep comes from. */
export function Provenance({ sweep }: { sweep: string }) {
  const from = useResource<ProvenanceResponse>(
    `/sweeps/${encodeURIComponent(sweep)}/provenance`,
    (change) => change.sweep === sweep,
  );
  return (
    <Loaded of={from} what="The provenance" lines={3}>
      {(data) =>
        data.provenance.length === 0 ? (
          <p class="muted">Nothing was recorded at submission.</p>
        ) : (
          <>
            {data.provenance.map((each, i) => (
              <Origin key={i} from={each} />
            ))}
          </>
        )
      }
    </Loaded>
  );
}

function Origin({ from }: { from: From }) {
  const git = from.git;
  return (
    <>
      <p>
        Submitted {from.time && <time dateTime={from.time}>{moment(from.time)}</time>} by {from.user} on{" "}
        {from.host}, ablate {from.version}, from <code>{from.file || "standard input"}</code>
      </p>
      {git ? (
        <p>
          {git.commit ? (
            <>
              Commit <code>{git.commit}</code>
            </>
          ) : (
            "No commit yet"
          )}
          {git.branch ? ` on ${git.branch}` : ", a detached HEAD"},{" "}
          {git.dirty ? "with changes" : "nothing changed since"}
          {git.diff_missing && ` (${git.diff_missing})`}
          {git.folders.some((folder) => folder !== "") && `; recorded of ${git.folders.join(" and ")}`}
          {git.changed_elsewhere > 0 &&
            `; ${plural(git.changed_elsewhere, "tracked file")} changed elsewhere in the work tree, not recorded`}
        </p>
      ) : (
        <p class="muted">{from.git_missing}</p>
      )}
      {git && git.untracked.length > 0 && (
        <p>
          {plural(git.untracked.length + git.untracked_left_out, "untracked file")}:{" "}
          {git.untracked.slice(0, 10).map((file) => (
            <>
              <code key={file.name}>{file.name}</code>{" "}
            </>
          ))}
        </p>
      )}
      {git?.diff && <pre tabIndex={0}>{git.diff}</pre>}
      {from.packages_missing && <p class="muted">Packages: {from.packages_missing}</p>}
      {from.packages && <pre tabIndex={0}>{from.packages}</pre>}
    </>
  );
}
