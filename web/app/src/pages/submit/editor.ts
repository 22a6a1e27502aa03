// SPDX-License-Identifier: Apache-2.0
// The only file that uses the editor's library. It is a chunk of its own, loaded by the page that has an editor.
import {
  autocompletion,
  completionKeymap,
  type Completion,
  type CompletionSource,
} from "@codemirror/autocomplete";
import {
  copyLineDown,
  copyLineUp,
  deleteLine,
  history,
  historyKeymap,
  indentLess,
  indentMore,
  moveLineDown,
  moveLineUp,
  standardKeymap,
  toggleComment,
} from "@codemirror/commands";
import { bracketMatching, indentService, indentUnit } from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import {
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
  type KeyBinding,
} from "@codemirror/view";
import type { Problem } from "../../generated/ablate";
import { colours } from "./colours";
import { mark, problems, toNextMark, type Mark } from "./marks";
import { messageOfProblem } from "./problem";
import { suggestionsAt, type Schema } from "./schema";
import { indentBehind } from "./yaml";

export interface Editor {
  /** Marks problems, each at its place. */
  mark: (problems: Problem[]) => void;
  /** Moves the cursor: line and column from 1. */
  goTo: (line: number, column: number) => void;
  /** Another text in place of all of it: one edit, which Ctrl+Z takes back. */
  replace: (text: string) => void;
  end: () => void;
}

interface EditorOptions {
  text: string;
  label: string;
  schema: () => Schema | undefined;
  onChange: (text: string) => void;
  onSubmit: () => void;
}

const kUnit = 2;

/** Beside the usual ones: what else moves and changes whole lines. */
const kKeys: KeyBinding[] = [
  { key: "Alt-ArrowUp", run: moveLineUp, shift: copyLineUp },
  { key: "Alt-ArrowDown", run: moveLineDown, shift: copyLineDown },
  { key: "Mod-[", run: indentLess },
  { key: "Mod-]", run: indentMore },
  { key: "Shift-Mod-k", run: deleteLine },
  { key: "Mod-/", run: toggleComment },
  { key: "F8", run: toNextMark },
];

/** In a shadow tree, where it may add style sheets, which the server's policy forbids in the page's head. */
export function openEditor(parent: HTMLElement, options: EditorOptions): Editor {
  const root = parent.attachShadow({ mode: "open" });
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: options.text,
      extensions: [
        lineNumbers(),
        highlightActiveLineGutter(),
        highlightActiveLine(),
        history(),
        indentUnit.of(" ".repeat(kUnit)),
        indentService.of((context, at) => indentBehind(context.lineAt(at, -1).text, kUnit)),
        EditorState.languageData.of(() => [{ commentTokens: { line: "#" } }]),
        bracketMatching(),
        colours,
        problems,
        autocompletion({ override: [completionsFrom(options.schema)], icons: false }),
        keymap.of([
          {
            key: "Mod-Enter",
            run: () => {
              options.onSubmit();
              return true;
            },
          },
          // Tab is not bound: it moves the focus on
          ...completionKeymap,
          ...kKeys,
          ...historyKeymap,
          ...standardKeymap,
        ]),
        EditorView.contentAttributes.of({ "aria-label": options.label, tabindex: "0" }),
        EditorView.updateListener.of(
          (update) => update.docChanged && options.onChange(update.state.doc.toString()),
        ),
        kTheme,
      ],
    }),
  });
  return {
    mark: (found) =>
      mark(
        view,
        found.map((one) => markOf(view.state, one)),
      ),
    goTo: (line, column) => {
      const at = offsetOf(view.state, line, column);
      view.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
      view.focus();
    },
    replace: (text) => {
      view.dispatch({
        changes: { from: 0, to: view.state.doc.length, insert: text },
        userEvent: "input.paste",
      });
      view.focus();
    },
    end: () => view.destroy(),
  };
}

/** Of a place that the server names; the nearest that there is. */
function offsetOf(state: EditorState, line: number, column: number): number {
  const { from, to } = state.doc.line(Math.min(Math.max(1, line), state.doc.lines));
  return Math.min(to, from + Math.max(0, column - 1));
}

function markOf(state: EditorState, problem: Problem): Mark {
  const from = offsetOf(state, problem.line, problem.column);
  const line = state.doc.lineAt(from);
  const word = /^[^\s,:{}[\]]+/.exec(line.text.slice(from - line.from))?.[0] ?? "";
  return {
    from,
    to: Math.min(line.to, from + Math.max(1, word.length)),
    message: (problem.field ? `${problem.field}: ` : "") + messageOfProblem(problem),
  };
}

function completionsFrom(schema: () => Schema | undefined): CompletionSource {
  return ({ state, pos, explicit }) => {
    const known = schema();
    const found = known && suggestionsAt(known, state.doc.toString(), pos);
    if (!found || (found.from === pos && !explicit)) return null; // not before a letter is there
    return {
      from: found.from,
      validFor: /^[\w.+-]*$/,
      options: found.options.map(({ label, kind, description }): Completion => {
        const info = description ? { info: description } : {};
        return kind === "key" ? { label, apply: `${label}: `, ...info } : { label, ...info };
      }),
    };
  };
}

const kTheme = EditorView.theme({
  "&": { height: "100%", fontSize: "13px", color: "var(--ink)", backgroundColor: "var(--panel)" },
  "&.cm-focused": { outline: "none" }, // its frame has it
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-gutters": {
    backgroundColor: "var(--raised)",
    color: "var(--muted)",
    borderRight: "1px solid var(--edge)",
  },
  ".cm-activeLine, .cm-activeLineGutter": {
    backgroundColor: "color-mix(in srgb, var(--raised) 60%, transparent)",
  },
  ".cm-content ::selection, .cm-line::selection": {
    backgroundColor: "color-mix(in srgb, var(--accent) 30%, transparent)",
  },
  ".cm-tooltip": { backgroundColor: "var(--panel)", color: "var(--ink)", border: "1px solid var(--edge)" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": {
    backgroundColor: "var(--accent)",
    color: "var(--panel)",
  },
  ".cm-completionInfo": { maxWidth: "40ch", padding: "6px 8px", fontFamily: "var(--sans)" },
});
