// SPDX-License-Identifier: Apache-2.0
// Completions in a sweep file, from its JSON Schema.

/** As much of JSON Schema as sweep files' has. */
export interface Schema {
  $ref?: string;
  definitions?: Record<string, Schema>;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  propertyNames?: Schema;
  items?: Schema | Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  then?: Schema;
  else?: Schema;
  enum?: unknown[];
  const?: unknown;
  type?: string | string[];
  description?: string;
}

/** Options that replace the text from `from` on. */
export interface Suggestions {
  from: number;
  options: { label: string; kind: "key" | "value"; description: string }[];
}

/** Of a list one element, whichever. */
const kElement = "[]";

const kWord = "[\\w.+-]*";
const kValue = new RegExp(`^([\\w.-]+):\\s+(${kWord})$`);
const kKey = new RegExp(`^(${kWord})$`);
const kLine = /^(\s*)((?:-\s+|-$)*)(?:(["']?)([\w.-]+)\3:(?:\s+(.*))?)?/;

/** Options at an offset of the text; undefined: none known. */
export function suggestionsAt(schema: Schema, text: string, offset: number): Suggestions | undefined {
  const lines = text.slice(0, offset).split("\n");
  const line = lines.pop()!;
  const inFlow = flowAt(line);
  const [, indent = "", dashes = ""] = kLine.exec(line)!;
  const written = inFlow ? inFlow.written : line.slice(indent.length + dashes.length);
  const path = inFlow
    ? [...pathOf(lines, line.slice(0, inFlow.open)), ...inFlow.path]
    : pathOf(lines, line.slice(0, indent.length + dashes.length));
  const value = kValue.exec(written);
  if (value) {
    const options = valuesOf(schemasAt(schema, [...path, value[1]!]));
    return options.length ? { from: offset - value[2]!.length, options } : undefined;
  }
  const key = kKey.exec(written);
  if (!key) return undefined;
  const at = schemasAt(schema, path);
  const options = [...keysOf(schema, at), ...(inFlow?.list || dashes ? valuesOf(at) : [])];
  return options.length ? { from: offset - key[1]!.length, options } : undefined;
}

/** The brackets that are open at the end of a line: "a: {b: 1, c" is in those of "a". */
function flowAt(line: string): { open: number; path: string[]; written: string; list: boolean } | undefined {
  const open: { bracket: string; at: number; from: number }[] = [];
  let quote = "";
  for (let i = 0; i < line.length; ++i) {
    const letter = line[i]!;
    if (quote) quote = letter === quote ? "" : quote;
    else if (letter === '"' || letter === "'") quote = letter;
    else if (letter === "#" && (i === 0 || line[i - 1] === " ")) return undefined;
    else if (letter === "{" || letter === "[") open.push({ bracket: letter, at: i, from: i + 1 });
    else if (letter === "}" || letter === "]") open.pop();
    else if (letter === "," && open.length) open.at(-1)!.from = i + 1;
  }
  if (quote || open.length === 0) return undefined;
  const path: string[] = [];
  open.forEach(({ bracket }, i) => {
    if (i > 0) {
      const key = /([\w.-]+):\s*$/.exec(line.slice(open[i - 1]!.from, open[i]!.at));
      if (key) path.push(key[1]!);
    }
    if (bracket === "[") path.push(kElement);
  });
  return {
    open: open[0]!.at,
    path,
    written: line.slice(open.at(-1)!.from).trimStart(),
    list: open.at(-1)!.bracket === "[",
  };
}

/** The keys above the end of `begun`, the line after `above`. */
function pathOf(above: string[], begun: string): string[] {
  const path: string[] = [];
  let limit = Infinity; // what stands left of it leads there
  let ofList = false; // a list may stand as far left as its key
  const take = (line: string, isLast: boolean): void => {
    const match = kLine.exec(line);
    if (!match || (!isLast && (/^\s*(#|$)/.test(line) || match[0].trim() === ""))) return;
    const [, indent = "", dashes = "", , key, value] = match;
    const column = indent.length + dashes.length;
    if (isLast && key === undefined) limit = column;
    else if (key !== undefined && (column < limit || (ofList && column === limit && dashes === ""))) {
      if (isLast || !value || /^[|>&#]/.test(value)) {
        path.unshift(key);
        limit = column;
        ofList = false;
      }
    }
    for (let at = dashes.lastIndexOf("-"); at >= 0; at = dashes.lastIndexOf("-", at - 1)) {
      if (indent.length + at < limit) {
        path.unshift(kElement);
        limit = indent.length + at;
        ofList = true;
      }
      if (at === 0) break;
    }
  };
  take(begun, true);
  for (let i = above.length - 1; i >= 0 && (limit > 0 || ofList); --i) take(above[i]!, false);
  return path;
}

/** A schema and its parts. */
function expand(root: Schema, schema: Schema, depth = 0): Schema[] {
  if (depth > 20) return [];
  const parts = [
    ...(schema.$ref ? [root.definitions?.[schema.$ref.replace("#/definitions/", "")]] : []),
    ...(schema.anyOf ?? []),
    ...(schema.oneOf ?? []),
    ...(schema.allOf ?? []),
    schema.then,
    schema.else,
  ].filter((part): part is Schema => part !== undefined);
  return [schema, ...parts.flatMap((part) => expand(root, part, depth + 1))];
}

/** The schemas of a place, one for each alternative. */
function schemasAt(root: Schema, path: string[]): Schema[] {
  let here = expand(root, root);
  for (const step of path) {
    const next = here.flatMap((schema): (Schema | undefined)[] => {
      if (step === kElement) return Array.isArray(schema.items) ? schema.items : [schema.items];
      if (schema.properties?.[step]) return [schema.properties[step]];
      return typeof schema.additionalProperties === "object" ? [schema.additionalProperties] : [];
    });
    here = next
      .filter((schema): schema is Schema => schema !== undefined)
      .flatMap((schema) => expand(root, schema));
    if (here.length > 2000) return []; // nobody reads so many
  }
  return here;
}

type Options = Suggestions["options"];
function unique(options: Options): Options {
  return [...new Map(options.toReversed().map((option) => [option.label, option])).values()].toReversed();
}

function keysOf(root: Schema, schemas: Schema[]): Options {
  return unique(
    schemas.flatMap((schema) => [
      ...Object.entries(schema.properties ?? {}).map(([label, { description }]) => ({
        label,
        kind: "key" as const,
        description: description ?? "",
      })),
      ...(schema.propertyNames ? valuesOf(expand(root, schema.propertyNames)) : []).map((option) => ({
        ...option,
        kind: "key" as const,
      })),
    ]),
  );
}

function valuesOf(schemas: Schema[]): Options {
  return unique(
    schemas.flatMap((schema) => {
      const values = [
        ...(schema.enum ?? []),
        ...(schema.const === undefined ? [] : [schema.const]),
        ...(schema.type === "boolean" ? [true, false] : []),
      ];
      return values
        .filter((value) => typeof value !== "object")
        .map((value) => ({
          label: String(value),
          kind: "value" as const,
          description: schema.description ?? "",
        }));
    }),
  );
}
