// SPDX-License-Identifier: Apache-2.0
import { getText, messageOf } from "../../../../api";
import { useBrief } from "../../../../brief";
import { toClipboard } from "../../../../clipboard";
import { Menu } from "../../../../components/menu";
import { plural } from "../../../../format";
import type { Table } from "../../../../generated/ablate";
import { printedPath, type Choice, type Format } from "./choice";

const kFormats: { format: Format; title: string; copied: boolean }[] = [
  { format: "latex", title: "LaTeX", copied: true },
  { format: "markdown", title: "Markdown", copied: true },
  { format: "csv", title: "CSV", copied: true },
  { format: "text", title: "Text", copied: true },
  { format: "html", title: "HTML page", copied: false },
];
const kNothing = { text: "" };

interface Props {
  sweep: string;
  table: Table;
  choice: Choice;
}

/** The table as it is shown, as `ablate table` prints it: to the clipboard, or as a file. */
export function CopyMenu({ sweep, table, choice }: Props) {
  const [said, setSaid] = useBrief<{ text: string; bad?: boolean }>(kNothing);
  const path = (format: Format): string => printedPath(sweep, table, format, choice);
  const copy = async (format: Format, title: string): Promise<void> => {
    setSaid({ text: "Printing…" });
    try {
      const text = getText(path(format), new AbortController().signal);
      await toClipboard(text);
      const lines = (await text).split("\n").length - 1;
      setSaid({ text: `Copied ${plural(lines, "line")} of ${title}.` });
    } catch (error) {
      setSaid({ text: messageOf(error), bad: true });
    }
  };
  return (
    <span class="copy">
      <Menu title="Copy table">
        {() => (
          <ul class="menu-list">
            {kFormats.map(({ format, title, copied }) => (
              <li key={format}>
                <span>{title}</span>
                {copied && (
                  <button
                    type="button"
                    aria-label={`Copy as ${title}`}
                    onClick={() => void copy(format, title)}
                  >
                    Copy
                  </button>
                )}
                <a
                  class="button"
                  href={`/api/v1${path(format)}`}
                  download
                  aria-label={`Download as ${title}`}
                >
                  Download
                </a>
              </li>
            ))}
          </ul>
        )}
      </Menu>
      <span role="status" class={said.bad ? "bad" : "muted"}>
        {said.text}
      </span>
    </span>
  );
}
