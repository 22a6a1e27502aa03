// SPDX-License-Identifier: Apache-2.0
import { createElement, type ComponentChildren } from "preact";
import { isSafe } from "./address";
import { parse, type Block, type Inline, type Item } from "./parse";

/**
 * What people wrote in Markdown, as elements: no text becomes HTML, so none can bring a script or a style. HTML in it is shown as it was
 * written, and a picture is a link to it.
 */
export default function Markdown({ text }: { text: string }) {
  return <div class="markdown">{blocks(parse(text))}</div>;
}

const blocks = (of: Block[]): ComponentChildren => of.map((block, i) => <Shown key={i} block={block} />);
const inlines = (of: Inline[]): ComponentChildren => of.map((inline, i) => <Word key={i} inline={inline} />);

function Shown({ block }: { block: Block }): ComponentChildren {
  switch (block.kind) {
    case "heading": // the page has levels 1 and 2
      return createElement(`h${Math.min(6, block.level + 2)}`, {}, inlines(block.children));
    case "paragraph":
      return <p>{inlines(block.children)}</p>;
    case "line":
      return inlines(block.children);
    case "code":
      return <pre tabIndex={0}>{block.text}</pre>;
    case "quote":
      return <blockquote>{blocks(block.children)}</blockquote>;
    case "list": {
      const items = block.items.map((item, i) => <Line key={i} item={item} />);
      return block.start === undefined ? <ul>{items}</ul> : <ol start={block.start}>{items}</ol>;
    }
    case "table":
      return <Table {...block} />;
    case "rule":
      return <hr />;
  }
}

function Line({ item }: { item: Item }) {
  if (item.done === undefined) return <li>{blocks(item.children)}</li>;
  return (
    <li class="task">
      <input type="checkbox" disabled checked={item.done} aria-label={item.done ? "done" : "to do"} />{" "}
      {blocks(item.children)}
    </li>
  );
}

function Table({ align, head, rows }: Extract<Block, { kind: "table" }>) {
  const side = (i: number) => (align[i] === "right" ? "num" : undefined);
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Table in the notes">
      <table>
        <thead>
          <tr>
            {head.map((cell, i) => (
              <th key={i} scope="col" class={side(i)}>
                {inlines(cell)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i}>
              {row.map((cell, k) => (
                <td key={k} class={side(k)}>
                  {inlines(cell)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Word({ inline }: { inline: Inline }): ComponentChildren {
  switch (inline.kind) {
    case "text":
      return inline.text;
    case "code":
      return <code>{inline.text}</code>;
    case "break":
      return <br />;
    case "link":
      return <Anchor href={inline.href}>{inlines(inline.children)}</Anchor>;
    default:
      return createElement(inline.kind, {}, inlines(inline.children));
  }
}

function Anchor({ href, children }: { href: string; children: ComponentChildren }) {
  if (!isSafe(href)) return <>{children}</>;
  return (
    <a href={href} rel="noopener noreferrer nofollow" {...(/^\w+:/.test(href) ? { target: "_blank" } : {})}>
      {children}
    </a>
  );
}
