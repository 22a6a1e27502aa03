// SPDX-License-Identifier: Apache-2.0
import { Fact } from "../../components/fact";
import type { Caller, TokenRole } from "../../generated/ablate";

/** TOKEN_ROLE_ADMIN as "admin". */
export const roleWord = (role: TokenRole): string => role.replace("TOKEN_ROLE_", "").toLowerCase();

/** What can be done here: the method that stands for it, and the least role that may call it. */
const kRights = [
  ["Look at sweeps, runs, tables, the queue and workers", "", "viewer"],
  ["Validate sweep files", "Validate", "viewer"],
  ["Plan, submit and extend sweeps", "Submit", "submitter"],
  ["Pause, resume, cancel, retry and rename sweeps, set priorities", "PauseSweep", "submitter"],
  ["Drain workers and put them back", "DrainWorker", "admin"],
  ["Create and revoke tokens", "CreateToken", "admin"],
  ["Read the audit", "ListAudit", "admin"],
] as const;

export function You({ caller }: { caller: Caller }) {
  return (
    <section aria-labelledby="you">
      <h2 id="you">You</h2>
      <p class="lead">{whoSentence(caller)}</p>
      {!caller.read_only && (
        <div class="panel">
          <dl class="facts">
            <Fact name="Name">
              <span class="name" title={caller.name}>
                {caller.name}
              </span>
            </Fact>
            <Fact name="Role">{roleWord(caller.role)}</Fact>
            {caller.token && (
              <Fact name="Token">
                <code>{caller.token.id}</code>
              </Fact>
            )}
            {caller.may.includes("Submit") && (
              <Fact name="Owner of what you submit">
                <span class="name" title={caller.owner}>
                  {caller.owner}
                </span>
              </Fact>
            )}
          </dl>
          <Rights caller={caller} />
        </div>
      )}
    </section>
  );
}

function Rights({ caller }: { caller: Caller }) {
  return (
    <ul class="rights" aria-label="What you may do">
      {kRights.map(([text, method, role]) => {
        const may = method === "" || caller.may.includes(method);
        return (
          <li key={text}>
            <span class={may ? "right-yes" : "muted"} aria-hidden="true">
              {may ? "✓" : "–"}
            </span>
            <span class={may ? "" : "muted"}>
              <span class="sr-only">{may ? "Yes: " : "No: "}</span>
              {text}
              {!may && `: needs role ${role}`}
            </span>
          </li>
        );
      })}
    </ul>
  );
}

function whoSentence(caller: Caller): string {
  if (caller.token) return "You are signed in with a token; its role decides what you may do.";
  if (caller.read_only) return `Nobody signs in here. Read only: ${caller.read_only}.`;
  return "Nobody signs in here: the scheduler serves this page without TLS, to this machine alone. You act as the user who runs it.";
}
