// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from "preact/hooks";
import { act } from "../../acting/act";
import { ownerOf, useCaller, whyNot } from "../../acting/caller";
import { say } from "../../acting/said";
import { asApiError, get, messageOf, type ApiError } from "../../api";
import { Notice } from "../../components/notice";
import { plural, whole } from "../../format";
import type {
  ExtendSweepResponse,
  Problem,
  ProvenanceResponse,
  SweepDetail,
  SweepPlan,
} from "../../generated/ablate";
import { useLiveState } from "../../live/live";
import type { Page } from "../../page";
import { Link, navigate, sweepPath, useAddress } from "../../router";
import { freeName, renamed } from "./copy";
import { draftOf, keepDraft } from "./draft";
import type { Editor } from "./editor";
import { kExamples } from "./examples";
import { Plan } from "./plan";
import { messageOfProblem } from "./problem";
import type { Schema } from "./schema";
import { submittedText } from "./submitted";

export const page: Page = { title: "New sweep", View: SubmitPage };

/** How long after the last key the file is checked. */
const kPauseMs = 500;
const kBlank = "ablate: 1\nname: \n";

/** What the editor begins with unless there is a draft: the text of a sweep file, its path, and the folder of the paths in it. */
interface Source {
  text: string;
  path: string;
  folder: string;
}

/** `?extend=NAME`: extends that sweep; `?from=NAME`: copies its file; `?example=NAME`. Without: what was written here last. */
function SubmitPage() {
  const query = useAddress().searchParams;
  const extended = query.get("extend");
  const copied = query.get("from");
  const example = query.get("example");
  const caller = useCaller();
  const why = whyNot(caller, [extended ? "ExtendSweep" : "Submit"]);
  const [source, setSource] = useState<Source & { of: string }>();
  const of = query.toString();
  const [failure, setFailure] = useState("");
  useEffect(() => {
    const abort = new AbortController();
    setFailure("");
    read(extended, copied, example, abort.signal)
      .then((found) => !abort.signal.aborted && setSource({ ...found, of }))
      .catch((error: unknown) => !abort.signal.aborted && setFailure(messageOf(error)));
    return () => abort.abort();
  }, [of]);
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <Link href="/sweeps">Sweeps</Link>
        {extended && (
          <span>
            <Link href={sweepPath(extended)}>{extended}</Link>
          </span>
        )}
      </nav>
      <h1 tabIndex={-1}>{extended ? `Extend ${extended}` : "New sweep"}</h1>
      {why ? (
        <Notice kind="empty" title="You cannot submit here.">
          {why}
        </Notice>
      ) : failure ? (
        <Notice kind="error" title="The file could not be read">
          {failure}
        </Notice>
      ) : source?.of === of ? (
        <Workbench key={of} of={of} source={source} extended={extended} owner={ownerOf(caller)} />
      ) : (
        <div class="skeleton" role="status" aria-label="Loading the file">
          <span />
          <span />
          <span />
        </div>
      )}
    </>
  );
}

async function read(
  extended: string | null,
  copied: string | null,
  example: string | null,
  signal: AbortSignal,
): Promise<Source> {
  const name = extended ?? copied;
  if (name !== null) {
    const path = `/sweeps/${encodeURIComponent(name)}`;
    const [detail, { provenance }] = await Promise.all([
      get<SweepDetail>(`${path}?count=1`, signal),
      get<ProvenanceResponse>(`${path}/provenance`, signal),
    ]);
    const file = provenance.findLast(({ file: one }) => one.startsWith("/"))?.file ?? "";
    const text = extended === null ? renamed(detail.text, await freeName(name, signal)) : detail.text;
    return { text, path: detail.file || "sweep.yaml", folder: file.replace(/\/[^/]*$/, "") };
  }
  if (example !== null) {
    const found = kExamples.find((one) => one.name === example);
    if (!found)
      throw new Error(`unknown example ${example}: expected ${kExamples.map((one) => one.name).join(", ")}`);
    return { text: await found.load(), path: `${example}.yaml`, folder: "" };
  }
  return { text: kBlank, path: "sweep.yaml", folder: "" };
}

/** What the server answered about a text. */
interface Looked {
  problems: Problem[];
  plan?: SweepPlan;
  extension?: ExtendSweepResponse;
  /** Why it could not be checked, or cannot be submitted. */
  error: string;
}
const kNothing: Looked = { problems: [], error: "" };

interface BenchProps {
  /** The address's query, which a draft is kept under. */
  of: string;
  source: Source;
  extended: string | null;
  owner: string | undefined;
}

function Workbench({ of, source, extended, owner }: BenchProps) {
  const place = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor>(undefined);
  const schema = useRef<Schema>(undefined);
  const [draft] = useState(() => draftOf(of));
  const [text, setText] = useState(draft ?? source.text);
  const [looked, setLooked] = useState<Looked>(kNothing);
  const [looking, setLooking] = useState(true);
  const [priority, setPriority] = useState("0");
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<ApiError>();
  const [broken, setBroken] = useState("");
  const [tries, setTries] = useState(0);
  const isLive = useLiveState().kind === "live";
  const file = { path: source.path, folder: source.folder, text };
  const submit = useRef(() => {}); // what the editor's key does, as things stand

  useEffect(() => {
    let gone = false;
    const abort = new AbortController();
    get<Schema>("/schema", abort.signal)
      .then((found) => (schema.current = found))
      .catch(() => undefined); // without it nothing is completed
    const loaded = import("./editor").then(({ openEditor }) => {
      if (gone || !place.current) return;
      editor.current = openEditor(place.current, {
        text,
        label: "Sweep file",
        schema: () => schema.current,
        onChange: setText,
        onSubmit: () => submit.current(),
      });
    });
    loaded.catch((error: unknown) => !gone && setBroken(messageOf(error)));
    return () => {
      gone = true;
      abort.abort();
      editor.current?.end();
      editor.current = undefined;
    };
  }, []);

  const isUnchecked = looked.error !== "";
  useEffect(() => {
    if (isLive && isUnchecked) setTries((before) => before + 1); // the server is there again
  }, [isLive]);

  useEffect(() => {
    keepDraft(of, text === source.text ? null : text);
    setRefusal(undefined);
    setLooking(true);
    const abort = new AbortController();
    const timer = window.setTimeout(() => {
      void look(file, extended, abort.signal).then((found) => {
        if (abort.signal.aborted) return;
        // the plan of the last valid text stays, so that one letter does not empty the page
        setLooked((old) => (found.problems.length || found.error ? { ...old, ...found } : found));
        editor.current?.mark(found.problems);
        setLooking(false);
      });
    }, kPauseMs);
    return () => {
      window.clearTimeout(timer);
      abort.abort();
    };
  }, [text, tries]);

  const replaceBy = (next: string, what: string): void => {
    const before = text;
    editor.current?.replace(next);
    if (before === kBlank) return;
    say({
      about: "draft",
      text: `${what} replaced your text.`,
      undo: {
        label: "Undo",
        run: async () => {
          keepDraft(of, before);
          editor.current?.replace(before);
          return { about: "draft", text: "Text restored." };
        },
      },
    });
  };
  const beginWith = async (name: string): Promise<void> => {
    try {
      replaceBy(await kExamples.find((one) => one.name === name)!.load(), `The example ${name}`);
    } catch (error) {
      say({ text: messageOf(error) }, true);
    }
  };
  const wrong = looked.problems.length > 0 || looked.error !== "";
  const ready = !wrong && !looking && !busy && (extended === null || looked.extension?.changed === true);
  submit.current = async () => {
    if (!ready) return;
    setBusy(true);
    setRefusal(undefined);
    try {
      if (extended === null) {
        const done = await act("Submit", {
          file,
          priority: Number(priority) || 0,
          ...(owner ? { owner } : {}),
        });
        keepDraft(of, null);
        navigate(sweepPath(done.sweep.name));
        say({ text: submittedText(done), about: done.sweep.name });
      } else {
        const expected = looked.extension!.stored;
        const done = await act("ExtendSweep", { file, expected, ...(owner ? { by: owner } : {}) });
        keepDraft(of, null);
        navigate(sweepPath(done.sweep.name));
        say({
          about: done.sweep.name,
          text: `Extended ${done.sweep.name}: ${plural(done.new_trials, "new trial")}.`,
        });
      }
    } catch (error) {
      setRefusal(asApiError(error));
      setBusy(false);
    }
  };
  return (
    <>
      {extended === null && (
        <div class="controls">
          <label>
            Begin with
            <select
              value=""
              onChange={({ currentTarget }) => {
                const name = currentTarget.value;
                currentTarget.value = "";
                if (name) void beginWith(name);
              }}
            >
              <option value="">an example…</option>
              {kExamples.map(({ name }) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
          <span class="muted">
            <kbd>Ctrl</kbd> <kbd>Space</kbd> completes, <kbd>Ctrl</kbd> <kbd>Enter</kbd> submits.
          </span>
        </div>
      )}
      {draft !== null && draft === text && (
        <p class="muted">
          Draft restored; not {extended === null ? "submitted" : "stored"} yet.{" "}
          <button type="button" onClick={() => replaceBy(source.text, beginning(of))}>
            Discard draft
          </button>
        </p>
      )}
      {broken && (
        <Notice kind="error" title="The editor could not be loaded">
          {broken}
        </Notice>
      )}
      <div class="workbench">
        <section aria-label="Sweep file">
          <div ref={place} class="editor panel" />
        </section>
        <section aria-label="Plan" class="outcome">
          <div role="status" class="looking">
            {looking
              ? "Checking…"
              : looked.problems.length > 0
                ? plural(looked.problems.length, "problem")
                : looked.error
                  ? "Not checked"
                  : "The file is valid."}
          </div>
          {looked.problems.length > 0 && (
            <ul class="problems" aria-label="Problems">
              {looked.problems.map((problem, i) => (
                <li key={i}>
                  <ProblemLine
                    problem={problem}
                    goTo={() => editor.current?.goTo(problem.line, problem.column)}
                  />
                </li>
              ))}
            </ul>
          )}
          {looked.error && (
            <p class="action-error" role="alert">
              {looked.error}
            </p>
          )}
          {refusal && (
            <div class="action-error" role="alert">
              {refusal.code === "ALREADY_EXISTS" && looked.plan ? (
                <Taken name={looked.plan.sweep} text={text} said={refusal.message} />
              ) : (
                refusal.message
              )}
            </div>
          )}
          {looked.extension && !wrong && <Changes extension={looked.extension} />}
          <form
            class="submit-line"
            onSubmit={(event) => {
              event.preventDefault();
              submit.current();
            }}
          >
            {extended === null && (
              <label>
                Priority
                <input
                  type="number"
                  min="-1000"
                  max="1000"
                  step="1"
                  value={priority}
                  onInput={(event) => setPriority(event.currentTarget.value)}
                />
              </label>
            )}
            <button type="submit" class="does" aria-disabled={!ready} aria-busy={busy}>
              {extended === null ? "Submit" : "Extend"}
            </button>
          </form>
          {looked.plan && <Plan plan={looked.plan} busy={looking || wrong} extends={extended !== null} />}
        </section>
      </div>
    </>
  );
}

/** Asks the server for the problems of a file; if there are none, for its plan and what an extension would change. */
async function look(file: Source, extended: string | null, signal: AbortSignal): Promise<Looked> {
  try {
    const { problems } = await act("Validate", { file }, signal);
    if (problems.length > 0) return { ...kNothing, problems };
    const [plan, extension] = await Promise.all([
      act("Plan", { file }, signal),
      extended === null ? undefined : act("ExtendSweep", { file, dry_run: true }, signal),
    ]);
    const other = extension && extension.sweep.name !== extended;
    return {
      ...kNothing,
      plan,
      ...(extension ? { extension } : {}),
      error: other ? `The file has the name ${extension.sweep.name}: expected ${extended}.` : "",
    };
  } catch (error) {
    return { ...kNothing, error: messageOf(error) };
  }
}

/** What "Discard draft" goes back to. */
const beginning = (of: string): string => (of === "" ? "An empty file" : "The stored file");

/** A name that another sweep has: what can be done about it. `said`: the server's words, where a command stands for what is a button here. */
function Taken({ name, text, said }: { name: string; text: string; said: string }) {
  const caller = useCaller();
  const mayGrow = said.includes("ablate extend") && caller?.may.includes("ExtendSweep");
  const extend = new URLSearchParams({ extend: name }).toString();
  return (
    <>
      The sweep <Link href={sweepPath(name)}>{name}</Link> already exists with different content: give this
      one another name
      {mayGrow ? (
        <>
          , or{" "}
          <button
            type="button"
            onClick={() => {
              keepDraft(extend, text);
              navigate(`/submit?${extend}`);
            }}
          >
            Extend {name}…
          </button>
        </>
      ) : (
        "."
      )}
      {said
        .split("\n")
        .slice(1)
        .map((line) => (
          <div key={line}>{line}</div>
        ))}
    </>
  );
}

function ProblemLine({ problem, goTo }: { problem: Problem; goTo: () => void }) {
  const { line, column, field } = problem;
  return (
    <>
      {line > 0 && (
        <button
          type="button"
          class="quiet"
          onClick={goTo}
          aria-label={`Go to line ${line}, column ${column}`}
        >
          {line}:{column}
        </button>
      )}{" "}
      {field && <code>{field}</code>} {messageOfProblem(problem)}
    </>
  );
}

/** What an extension would change. */
function Changes({ extension }: { extension: ExtendSweepResponse }) {
  if (!extension.changed) return <p class="muted">Nothing to extend: the file has not changed.</p>;
  return (
    <div class="panel changes">
      <ul>
        {extension.changes.map((change) => (
          <li key={change}>{change}</li>
        ))}
      </ul>
      <p>
        {plural(extension.new_trials, "new trial")}
        {extension.continued_trials > 0 && ` (${whole(extension.continued_trials)} from a checkpoint)`}
        {extension.shared_trials > 0 && `, ${whole(extension.shared_trials)} already stored`},{" "}
        {whole(extension.kept_trials)} unchanged
        {extension.former_trials > 0 && `, ${whole(extension.former_trials)} no longer in the table but kept`}
        .
      </p>
    </div>
  );
}
