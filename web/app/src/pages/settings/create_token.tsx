// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from "preact/hooks";
import { act } from "../../acting/act";
import { AskingButton } from "../../acting/button";
import { useBrief } from "../../brief";
import { plural } from "../../format";
import type { TokenRole } from "../../generated/ablate";
import { newToken } from "./new_token";
import { roleWord } from "./you";

/** A token that was just created. `text` is its secret: it is in this page's memory alone, until it is put away. */
export interface Created {
  id: string;
  name: string;
  role: TokenRole;
  text: string;
}

const kRoles = {
  TOKEN_ROLE_VIEWER: "looks at everything",
  TOKEN_ROLE_SUBMITTER: "also submits, extends and cancels sweeps",
  TOKEN_ROLE_ADMIN: "also drains workers, removes sweeps and creates tokens",
  TOKEN_ROLE_JOIN: "lets one worker join, once",
} satisfies Partial<Record<TokenRole, string>>;
type Role = keyof typeof kRoles;

/** Hours until the end; 0: never. */
const kLives = [1, 24, 7 * 24, 30 * 24, 90 * 24, 365 * 24, 0];
const lifeText = (hours: number): string =>
  hours === 0 ? "never" : hours < 48 ? `in ${plural(hours, "hour")}` : `in ${plural(hours / 24, "day")}`;
const kUsual = { person: 90 * 24, join: 24 };

/** Asks for role, name and end. The token is made here, in the browser; the scheduler gets its digest. */
export function CreateToken({ onCreated }: { onCreated: (created: Created) => void }) {
  const [role, setRole] = useState<Role>("TOKEN_ROLE_VIEWER");
  const [name, setName] = useState("");
  const [hours, setHours] = useState(kUsual.person);
  const joins = role === "TOKEN_ROLE_JOIN";
  const choose = (to: Role): void => {
    setRole(to);
    setHours(to === "TOKEN_ROLE_JOIN" ? kUsual.join : joins ? kUsual.person : hours);
  };
  return (
    <AskingButton
      label="Create token…"
      title="Create a token"
      verb="Create"
      onOpen={() => {
        setRole("TOKEN_ROLE_VIEWER");
        setName("");
        setHours(kUsual.person);
      }}
      run={async () => {
        const { id, text, sha256 } = await newToken();
        const holder = name.trim() || (joins ? "a worker" : "");
        const expires = hours ? { expires: new Date(Date.now() + hours * 3600_000).toISOString() } : {};
        await act("CreateToken", { id, sha256, role, name: holder, ...expires });
        onCreated({ id, name: holder, role, text });
        return undefined;
      }}
    >
      <label class="field">
        Role
        <select value={role} onChange={(event) => choose(event.currentTarget.value as Role)}>
          {Object.keys(kRoles).map((each) => (
            <option key={each} value={each}>
              {roleWord(each as Role)}
            </option>
          ))}
        </select>
        <small>{kRoles[role]}</small>
      </label>
      <label class="field">
        {joins ? "Name (optional)" : "Name"}
        <input
          type="text"
          autocomplete="off"
          maxLength={100}
          required={!joins}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <small>{joins ? "for this list only" : "whom the token is for, as the audit shows it"}</small>
      </label>
      <label class="field">
        Expires
        <select value={String(hours)} onChange={(event) => setHours(Number(event.currentTarget.value))}>
          {kLives
            .filter((life) => !joins || life > 0)
            .map((life) => (
              <option key={life} value={String(life)}>
                {lifeText(life)}
              </option>
            ))}
        </select>
      </label>
    </AskingButton>
  );
}

/** The secret, until it is put away or the page is left. */
export function ShownOnce({ created, onDone }: { created: Created; onDone: () => void }) {
  const [said, setSaid] = useBrief("");
  const box = useRef<HTMLElement>(null);
  const secret = useRef<HTMLElement>(null);
  useEffect(() => box.current?.focus(), []);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(created.text);
      setSaid("Copied");
    } catch {
      getSelection()?.selectAllChildren(secret.current!);
      setSaid("The browser blocks copying: the token is selected, press Ctrl+C");
    }
  };
  const how =
    created.role === "TOKEN_ROLE_JOIN"
      ? "Put it in a file of mode 0600, and start 'ablate-worker --join-token-file FILE'."
      : "Its holder signs in here with it, or runs 'ablate login' with it.";
  return (
    <section class="secret panel" aria-labelledby="secret-title" tabIndex={-1} ref={box}>
      <h3 id="secret-title">
        Token for {created.name} ({roleWord(created.role)})
      </h3>
      <p>Copy it now: it is shown only once. {how}</p>
      <code class="secret-text" ref={secret}>
        {created.text}
      </code>
      <div class="actions">
        <button type="button" class="does" onClick={() => void copy()}>
          Copy
        </button>
        <button type="button" onClick={onDone}>
          Done
        </button>
        <span class="muted" role="status">
          {said}
        </span>
      </div>
    </section>
  );
}
