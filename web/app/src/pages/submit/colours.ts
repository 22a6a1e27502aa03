// SPDX-License-Identifier: Apache-2.0
// Colours of the lines that the editor shows.
import { RangeSetBuilder } from "@codemirror/state";
import { Decoration, EditorView, ViewPlugin, type DecorationSet, type ViewUpdate } from "@codemirror/view";
import { kNothingOpen, tokensOf, type Open, type Token } from "./yaml";

const kMarks = Object.fromEntries(
  (["comment", "key", "string", "mark", "word"] as const).map((kind) => [
    kind,
    Decoration.mark({ class: `yaml-${kind}` }),
  ]),
) as Record<Token["kind"], Decoration>;

/** In longer lines nothing is coloured. */
const kLongest = 5000;

class Colours {
  decorations: DecorationSet;
  /** What is open before each line, as far as that was looked at. */
  private open: Open[] = [kNothingOpen];

  constructor(view: EditorView) {
    this.decorations = this.draw(view);
  }

  update(update: ViewUpdate): void {
    if (update.docChanged) {
      let first = Infinity;
      update.changes.iterChangedRanges((_from, _to, from) => (first = Math.min(first, from)));
      this.open.length = Math.min(this.open.length, update.state.doc.lineAt(first).number);
    }
    if (update.docChanged || update.viewportChanged) this.decorations = this.draw(update.view);
  }

  private draw({ state: { doc }, visibleRanges }: EditorView): DecorationSet {
    const builder = new RangeSetBuilder<Decoration>();
    for (const { from, to } of visibleRanges) {
      const last = doc.lineAt(to).number;
      const shown = doc.lineAt(from).number;
      for (let number = Math.min(this.open.length, shown); number <= last; ++number) {
        const line = doc.line(number);
        const { tokens, open } = tokensOf(line.length > kLongest ? "" : line.text, this.open[number - 1]!);
        this.open[number] = open;
        if (number < shown) continue;
        for (const token of tokens)
          if (token.to > token.from)
            builder.add(line.from + token.from, line.from + token.to, kMarks[token.kind]);
      }
    }
    return builder.finish();
  }
}

export const colours = [
  ViewPlugin.fromClass(Colours, { decorations: ({ decorations }) => decorations }),
  EditorView.theme({
    ".yaml-comment": { color: "var(--muted)", fontStyle: "italic" },
    ".yaml-key": { color: "var(--accent)" },
    ".yaml-string": { color: "var(--good)" },
    ".yaml-mark": { color: "var(--muted)" },
    ".yaml-word": { color: "var(--magenta)" },
  }),
];
