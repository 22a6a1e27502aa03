// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import { act } from "../../acting/act";
import { AskingButton } from "../../acting/button";
import type { Said } from "../../acting/said";
import { Loaded, Notice } from "../../components/notice";
import { firstOf, Pager } from "../../components/pager";
import { ColumnHead, TablePanel } from "../../components/table_panel";
import { moment, plural } from "../../format";
import type { Caller, TokenInfo, TokenRole } from "../../generated/ablate";
import { Link, useAddress, withQuery } from "../../router";
import { useAsked } from "./asked";
import { CreateToken, ShownOnce, type Created } from "./create_token";
import { roleWord } from "./you";

const kShown = 50;

interface Props {
  caller: Caller;
  /** Asks anew when it changes, which `again` makes it do. */
  times: number;
  again: () => void;
}

/** Who may get in. `?ended=1`: with those who may no longer. */
export function Tokens({ caller, times, again }: Props) {
  const [created, setCreated] = useState<Created | null>(null);
  const answer = useAsked("ListTokens", {}, times);
  const query = useAddress().searchParams;
  const ended = query.get("ended") === "1";
  const first = firstOf(query);
  return (
    <>
      {!caller.token && (
        <p class="muted">
          This scheduler asks nobody for a token. Tokens matter once it listens with TLS:{" "}
          <code>ablate init-fleet</code> makes the certificates.
        </p>
      )}
      <div class="actions token-actions">
        <CreateToken
          onCreated={(token) => {
            setCreated(token);
            again();
          }}
        />
      </div>
      {created && (
        <ShownOnce
          key={created.id}
          created={created}
          onDone={() => {
            setCreated(null);
            document.getElementById("tokens")?.focus();
          }}
        />
      )}
      <Loaded of={answer} what="Tokens">
        {({ tokens }) => {
          const good = tokens.filter((token) => !token.why_not);
          const shown = ended ? tokens : good;
          const others = tokens.length - good.length;
          return (
            <>
              {shown.length === 0 ? (
                <Notice kind="empty" title={others > 0 ? "No token is valid." : "No tokens yet."} />
              ) : (
                <>
                  <TokenTable tokens={shown.slice(first, first + kShown)} caller={caller} again={again} />
                  <Pager
                    first={first}
                    size={kShown}
                    total={shown.length}
                    what="Tokens"
                    note="newest first."
                  />
                </>
              )}
              {others > 0 && (
                <p class="muted">
                  <Link href={withQuery({ ended: ended ? null : "1", first: null })}>
                    {ended ? "Hide" : "Show"} {plural(others, "ended token")}
                  </Link>
                </p>
              )}
            </>
          );
        }}
      </Loaded>
    </>
  );
}

function TokenTable({ tokens, caller, again }: { tokens: TokenInfo[]; caller: Caller; again: () => void }) {
  return (
    <TablePanel
      caption="Tokens, newest first"
      head={
        <>
          <ColumnHead>Name</ColumnHead>
          <ColumnHead>Role</ColumnHead>
          <ColumnHead>State</ColumnHead>
          <ColumnHead>Token</ColumnHead>
          <ColumnHead>Created by</ColumnHead>
          <ColumnHead num>Created</ColumnHead>
          <ColumnHead num>Expires</ColumnHead>
          <ColumnHead num title="To a minute">
            Last used
          </ColumnHead>
          <ColumnHead>
            <span class="sr-only">Action</span>
          </ColumnHead>
        </>
      }
    >
      {tokens.map((token) => (
        <tr key={token.id}>
          <th scope="row">
            <span class="holder">
              <span class="strong name" title={token.name}>
                {token.name}
              </span>
              {token.id === caller.token?.id && <span class="tag">yours</span>}
            </span>
          </th>
          <td>{roleWord(token.role)}</td>
          <td>
            <TokenState token={token} />
          </td>
          <td>
            <code>{token.id}</code>
          </td>
          <td>
            <span class="name muted" title={token.made_by}>
              {token.made_by || "–"}
            </span>
          </td>
          <td class="num">
            <TokenDate at={token.created} none="–" />
          </td>
          <td class="num">
            <TokenDate at={token.expires} none="never" />
          </td>
          <td class="num">
            <TokenDate at={token.seen} none="never" />
          </td>
          <td>{!token.why_not && <Revoke token={token} caller={caller} again={again} />}</td>
        </tr>
      ))}
    </TablePanel>
  );
}

function TokenDate({ at, none }: { at: string | undefined; none: string }) {
  return at ? <time dateTime={at}>{moment(at)}</time> : <span class="muted">{none}</span>;
}

function TokenState({ token }: { token: TokenInfo }) {
  const word = !token.why_not ? "valid" : token.revoked ? "revoked" : token.used ? "used" : "expired";
  return (
    <span class={`state state-${word === "valid" ? "completed" : "cancelled"}`} title={token.why_not}>
      <span class="dot" aria-hidden="true" />
      {word}
    </span>
  );
}

/** What its holder can no longer do, by role. */
const kLost: Record<TokenRole, string> = {
  TOKEN_ROLE_UNSPECIFIED: "",
  TOKEN_ROLE_VIEWER: "Its sessions and calls end at once.",
  TOKEN_ROLE_SUBMITTER: "Its sessions and calls end at once. Sweeps submitted with it go on.",
  TOKEN_ROLE_ADMIN: "Its sessions and calls end at once. Sweeps submitted and tokens created with it stay.",
  TOKEN_ROLE_WORKER:
    "The worker is disconnected, and its runs go back to the queue. It needs a new join token to come back.",
  TOKEN_ROLE_JOIN: "No worker can join with it.",
};

function Revoke({ token, caller, again }: { token: TokenInfo; caller: Caller; again: () => void }) {
  if (!caller.may.includes("RevokeToken")) return null;
  const own = token.id === caller.token?.id;
  return (
    <AskingButton
      quiet
      label="Revoke…"
      name={`Revoke the token of ${token.name}, ${token.id}`}
      title={`Revoke the token of ${token.name}?`}
      verb="Revoke"
      ends
      run={async (): Promise<Said> => {
        await act("RevokeToken", { id: token.id });
        again();
        return { text: `Revoked token ${token.id} of ${token.name}.` };
      }}
    >
      <p>
        <code>{token.id}</code>, role {roleWord(token.role)}. {kLost[token.role]} This cannot be undone.
      </p>
      {own && (
        <p class="warn">You are signed in with this token: you will be signed out, and need another.</p>
      )}
    </AskingButton>
  );
}
