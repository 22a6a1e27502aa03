// SPDX-License-Identifier: Apache-2.0

/** A piece of a log with the classes that draw it ("": as any text). */
export interface Span {
  text: string;
  style: string;
  /** The how many-th place that was looked for this is (a part of). */
  match?: number;
}

// ESC [ … m (colours), other ESC [ … letter (cursor), ESC ] … BEL or ESC \\ (titles, links), ESC and one more character; then what
// else a browser would draw as a box (the tab stays), line ends, and text
const kPieces =
  // eslint-disable-next-line no-control-regex
  /\u001b\[([\d;]*)m|\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])|[\r\n]|[\u0000-\u0008\u000b-\u001f\u007f]|[^\u0000-\u0008\u000a-\u001f\u007f]+/g;

const kNames = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/** What "select graphic rendition" has set so far. Colours beyond the sixteen are left out: none knows on which ground they are read. */
class Rendition {
  private readonly on = new Set<string>();
  private ink = "";
  private ground = "";

  apply(codes: string): void {
    const numbers = codes.split(";").map(Number);
    for (let i = 0; i < numbers.length; ++i) {
      const code = numbers[i]!;
      if (code === 38 || code === 48) {
        i += numbers[i + 1] === 5 ? 2 : numbers[i + 1] === 2 ? 4 : 0;
        this.colour(code, "");
      } else if (code === 0) this.clear();
      else if (code === 1 || code === 2 || code === 3 || code === 4 || code === 7)
        this.on.add({ 1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse" }[code]);
      else if (code === 22) (this.on.delete("bold"), this.on.delete("dim"));
      else if (code === 23) this.on.delete("italic");
      else if (code === 24) this.on.delete("underline");
      else if (code === 27) this.on.delete("inverse");
      else if ((code >= 30 && code <= 39) || (code >= 90 && code <= 97))
        this.colour(38, kNames[code % 10] ?? "");
      else if ((code >= 40 && code <= 49) || (code >= 100 && code <= 107))
        this.colour(48, kNames[code % 10] ?? "");
    }
  }
  style(): string {
    const names = [...this.on, this.ink, this.ground && `on-${this.ground}`];
    return names
      .filter(Boolean)
      .map((name) => `ansi-${name}`)
      .join(" ");
  }
  private colour(which: number, name: string): void {
    if (which === 38) this.ink = name;
    else this.ground = name;
  }
  private clear(): void {
    this.on.clear();
    this.ink = this.ground = "";
  }
}

/** A log as a terminal would leave it: in its colours, without titles, a line that was written over itself as it was at last. */
export function logSpans(log: string): Span[] {
  const spans: Span[] = [];
  const rendition = new Rendition();
  let line = 0; // the first span of the line that is written
  let returned = false; // to its beginning: what comes next is written over it
  const add = (text: string) => {
    const style = rendition.style();
    const last = spans.length > line || text === "\n" ? spans.at(-1) : undefined;
    if (last?.style === style) last.text += text;
    else spans.push({ text, style });
  };
  for (const [piece, codes] of log.matchAll(kPieces)) {
    if (codes !== undefined) rendition.apply(codes);
    else if (piece === "\r") returned = true;
    else if (piece === "\n") {
      add(piece);
      line = spans.length;
      returned = false;
    } else if (piece >= " " || piece.startsWith("\t")) {
      if (returned) spans.length = line;
      returned = false;
      add(piece);
    }
  }
  return merged(spans);
}

/** Fewer of them: neighbours of one style are one. */
function merged(spans: Span[]): Span[] {
  const some: Span[] = [];
  for (const span of spans) {
    const last = some.at(-1);
    if (last && last.style === span.style) last.text += span.text;
    else some.push({ ...span });
  }
  return some;
}

export const textOf = (spans: Span[]): string => spans.map(({ text }) => text).join("");

/** Beyond this nobody goes from one to the next. */
const kMostMatches = 2000;

/** Some characters of a log's text. */
export interface Place {
  from: number;
  to: number;
}

/** Where the words stand, in capitals or not (`more`: and further places), and the spans with these places marked. */
export function find(spans: Span[], words: string): { spans: Span[]; places: Place[]; more: boolean } {
  if (words === "") return { spans, places: [], more: false };
  const pattern = new RegExp(words.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "giu");
  const places: Place[] = [];
  let more = false;
  for (const { index, 0: found } of textOf(spans).matchAll(pattern)) {
    more = places.length === kMostMatches;
    if (more) break;
    places.push({ from: index, to: index + found.length });
  }
  return { spans: marked(spans, places), places, more };
}

/** As programs say that something went wrong: "error: …", "Traceback", "RuntimeError". */
const kErrors = [
  /\b(error|exception|traceback|fatal|panic|aborted|segmentation fault|out of memory|killed)\b/i,
  /[a-z](Error|Exception)\b/,
];

/** The first line that says that something went wrong. */
export function firstError(spans: Span[]): Place | undefined {
  const text = textOf(spans);
  const found = kErrors.map((words) => text.search(words)).filter((at) => at >= 0);
  if (found.length === 0) return undefined;
  const at = Math.min(...found);
  const end = text.indexOf("\n", at);
  return { from: text.lastIndexOf("\n", at) + 1, to: end < 0 ? text.length : end };
}

function marked(spans: Span[], places: Place[]): Span[] {
  const result: Span[] = [];
  let at = 0; // of the text before the span
  let next = 0; // of the places
  for (const span of spans) {
    const end = at + span.text.length;
    for (let from = at; from < end;) {
      while (next < places.length && places[next]!.to <= from) ++next;
      const place = places[next];
      const inside = place !== undefined && place.from <= from;
      const to = Math.min(end, place === undefined ? end : inside ? place.to : place.from);
      result.push({
        text: span.text.slice(from - at, to - at),
        style: span.style,
        ...(inside && { match: next }),
      });
      from = to;
    }
    at = end;
  }
  return result;
}
