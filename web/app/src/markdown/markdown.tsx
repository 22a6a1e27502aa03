// SPDX-License-Identifier: Apache-2.0
import { Lexer, type Token, type Tokens } from "marked";
import { createElement, type ComponentChildren } from "preact";

/**
 * What people wrote in Markdown, as elements: no text becomes HTML, so none can bring a script or a style. HTML in it is shown as it was
 * written, and a picture is a link to it.
 */
export default function Markdown({ text }: { text: string }) {
  return <div class="markdown">{blocks(Lexer.lex(text))}</div>;
}

function blocks(tokens: Token[]): ComponentChildren[] {
  return tokens.map((token, i) => <Block key={i} token={token} />);
}

function inlines(tokens: Token[] | undefined): ComponentChildren[] {
  return (tokens ?? []).map((token, i) => <Inline key={i} token={token} />);
}

function Block({ token }: { token: Token }): ComponentChildren {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading": // the page has levels 1 and 2
      return createElement(`h${Math.min(6, (token as Tokens.Heading).depth + 2)}`, {}, inlines(token.tokens));
    case "paragraph":
      return <p>{inlines(token.tokens)}</p>;
    case "blockquote":
      return <blockquote>{blocks(token.tokens ?? [])}</blockquote>;
    case "code":
      return <pre tabIndex={0}>{(token as Tokens.Code).text}</pre>;
    case "hr":
      return <hr />;
    case "list":
      return <List list={token as Tokens.List} />;
    case "table":
      return <Table table={token as Tokens.Table} />;
    case "text":
      return token.tokens ? inlines(token.tokens) : (token as Tokens.Text).text;
    default:
      return <p>{token.raw}</p>;
  }
}

function List({ list }: { list: Tokens.List }) {
  const items = list.items.map((item, i) => (
    <li key={i} class={item.task ? "task" : undefined}>
      {item.task && <input type="checkbox" disabled checked={item.checked ?? false} aria-label="Done" />}
      {blocks(item.tokens.filter(({ type }) => type !== "checkbox"))}
    </li>
  ));
  return list.ordered ? <ol start={Number(list.start) || 1}>{items}</ol> : <ul>{items}</ul>;
}

function Table({ table }: { table: Tokens.Table }) {
  const side = (align: string | null) => (align === "right" ? "num" : undefined);
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Table in the notes">
      <table>
        <thead>
          <tr>
            {table.header.map((cell, i) => (
              <th key={i} scope="col" class={side(cell.align)}>
                {inlines(cell.tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, i) => (
            <tr key={i}>
              {row.map((cell, k) => (
                <td key={k} class={side(cell.align)}>
                  {inlines(cell.tokens)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Inline({ token }: { token: Token }): ComponentChildren {
  switch (token.type) {
    case "strong":
      return <strong>{inlines(token.tokens)}</strong>;
    case "em":
      return <em>{inlines(token.tokens)}</em>;
    case "del":
      return <del>{inlines(token.tokens)}</del>;
    case "codespan":
      return <code>{(token as Tokens.Codespan).text}</code>;
    case "br":
      return <br />;
    case "link":
      return <Anchor href={(token as Tokens.Link).href}>{inlines(token.tokens)}</Anchor>;
    case "image":
      return <Anchor href={(token as Tokens.Image).href}>{(token as Tokens.Image).text || "picture"}</Anchor>;
    case "escape":
      return (token as Tokens.Escape).text;
    case "text":
      return token.tokens ? inlines(token.tokens) : (token as Tokens.Text).text;
    default:
      return token.raw;
  }
}

/** Where a link may lead: to another site, a mail address, or within the dashboard. */
export function isSafe(href: string): boolean {
  try {
    return ["http:", "https:", "mailto:"].includes(new URL(href, "https://ablate.invalid/").protocol);
  } catch {
    return false;
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
