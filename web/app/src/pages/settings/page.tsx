// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { useCaller } from "../../acting/caller";
import { Loaded, Notice } from "../../components/notice";
import type { Caller } from "../../generated/ablate";
import type { Page } from "../../page";
import { Audit } from "./audit";
import { Retention } from "./retention";
import { Tokens } from "./tokens";
import { roleWord, You } from "./you";

export const page: Page = {
  title: "Settings",
  nav: 5,
  key: "e",
  View: SettingsPage,
};

/** Who looks at this, what they may do, what is kept for how long, and for admins: who else may, and who did. */
function SettingsPage() {
  const caller = useCaller();
  return (
    <>
      <h1 tabIndex={-1}>Settings</h1>
      <Loaded of={caller ? { data: caller } : {}} what="Your role" lines={6}>
        {(data) => <Sections caller={data} />}
      </Loaded>
    </>
  );
}

function Sections({ caller }: { caller: Caller }) {
  // what is done to tokens is in the audit
  const [times, setTimes] = useState(0);
  const again = (): void => setTimes((old) => old + 1);
  if (caller.read_only)
    return (
      <>
        <You caller={caller} />
        <Notice kind="empty" title="Tokens and the audit are not shown here.">
          A scheduler's dashboard shows them to its admins.
        </Notice>
        <Retention />
      </>
    );
  return (
    <>
      <You caller={caller} />
      <section aria-labelledby="tokens">
        <h2 id="tokens" tabIndex={-1}>
          Tokens
        </h2>
        {caller.may.includes("ListTokens") ? (
          <Tokens caller={caller} times={times} again={again} />
        ) : (
          <Closed caller={caller} what="tokens" />
        )}
      </section>
      <section aria-labelledby="audit">
        <h2 id="audit">Audit</h2>
        {caller.may.includes("ListAudit") ? (
          <Audit times={times} again={again} />
        ) : (
          <Closed caller={caller} what="the audit" />
        )}
      </section>
      <Retention />
    </>
  );
}

/** Why somebody does not see this. */
function Closed({ caller, what }: { caller: Caller; what: string }) {
  return (
    <Notice kind="empty" title={`Only admins see ${what}.`}>
      Your role is {roleWord(caller.role)}. An admin can create a token of role admin for you.
    </Notice>
  );
}
