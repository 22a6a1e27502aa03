// SPDX-License-Identifier: Apache-2.0
// Problems in the editor: underlined, with a mark beside their line, and what they say where the pointer is.
import { RangeSet, StateEffect, StateField, type Extension } from "@codemirror/state";
import { Decoration, EditorView, gutter, GutterMarker, hoverTooltip, type Command } from "@codemirror/view";

export interface Mark {
  from: number;
  to: number;
  message: string;
}

const setMarks = StateEffect.define<Mark[]>();

class LineMark extends GutterMarker {
  constructor(private readonly message: string) {
    super();
  }
  override eq(other: LineMark): boolean {
    return other.message === this.message;
  }
  override toDOM(): Node {
    const mark = document.createElement("span");
    mark.className = "problem-mark";
    mark.title = this.message;
    mark.textContent = "!";
    return mark;
  }
}

const kUnderline = Decoration.mark({ class: "problem" });

const marks = StateField.define<Mark[]>({
  create: () => [],
  update: (old, { effects, changes }) => {
    const set = effects.findLast((effect) => effect.is(setMarks));
    if (set) return set.value as Mark[];
    if (changes.empty) return old;
    return old.map((mark) => ({
      ...mark,
      from: changes.mapPos(mark.from, 1),
      to: changes.mapPos(mark.to, -1),
    }));
  },
  provide: (field) =>
    EditorView.decorations.from(field, (all) =>
      Decoration.set(
        all.filter(({ from, to }) => to > from).map(({ from, to }) => kUnderline.range(from, to)),
        true,
      ),
    ),
});

const beside = gutter({
  class: "problem-gutter",
  markers: ({ state }) => {
    const lines = new Map<number, string[]>();
    for (const { from, message } of state.field(marks)) {
      const line = state.doc.lineAt(from).from;
      lines.set(line, [...(lines.get(line) ?? []), message]);
    }
    return RangeSet.of(
      [...lines].map(([line, messages]) => new LineMark(messages.join("\n")).range(line)),
      true,
    );
  },
});

const said = hoverTooltip((view, at) => {
  const here = view.state.field(marks).filter(({ from, to }) => from <= at && at <= to);
  if (here.length === 0) return null;
  return {
    pos: here[0]!.from,
    above: true,
    create: () => {
      const dom = document.createElement("div");
      for (const { message } of here) {
        const line = document.createElement("div");
        line.className = "problem-text";
        line.textContent = message;
        dom.append(line);
      }
      return { dom };
    },
  };
});

/** Moves the cursor to the next problem; from the last one to the first. */
export const toNextMark: Command = (view) => {
  const all = [...view.state.field(marks)].sort((a, b) => a.from - b.from);
  const next = all.find(({ from }) => from > view.state.selection.main.head) ?? all[0];
  if (!next) return false;
  view.dispatch({ selection: { anchor: next.from }, scrollIntoView: true });
  return true;
};

/** Marks these, and no others. */
export function mark(view: EditorView, all: Mark[]): void {
  view.dispatch({ effects: setMarks.of(all) });
}

export const problems: Extension = [
  marks,
  beside,
  said,
  EditorView.theme({
    ".problem": { textDecoration: "underline wavy var(--bad)", textUnderlineOffset: "3px" },
    ".problem-gutter": { width: "1.2em" },
    ".problem-mark": {
      display: "block",
      color: "var(--bad)",
      fontWeight: "700",
      textAlign: "center",
      cursor: "default",
    },
    ".problem-text": {
      padding: "3px 8px",
      borderLeft: "4px solid var(--bad)",
      fontFamily: "var(--sans)",
      whiteSpace: "pre-wrap",
      maxWidth: "60ch",
    },
  }),
];
