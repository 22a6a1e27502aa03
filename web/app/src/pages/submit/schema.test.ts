// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { suggestionsAt, type Schema } from "./schema";

const kSchema: Schema = {
  definitions: {
    model: {
      properties: {
        attention: { $ref: "#/definitions/attention", description: "How it attends." },
        preset: { enum: ["simple-vit-ti", "swin-t"] },
      },
    },
    attention: { oneOf: [{ properties: { kernel: { enum: ["softmax", "gaussian"] } } }, { const: "none" }] },
    row: {
      properties: {
        id: { type: "string" },
        label: { type: "string" },
        set: { properties: { "model.attention.kernel": { enum: ["softmax", "gaussian"] } } },
      },
    },
    key: { anyOf: [{ enum: ["data.name", "model.preset"] }] },
  },
  properties: {
    name: { type: "string", description: "Name of the sweep." },
    base: { properties: { model: { $ref: "#/definitions/model" } } },
    rows: { items: { $ref: "#/definitions/row" } },
    only_if: { additionalProperties: { propertyNames: { $ref: "#/definitions/key" } } },
    resources: { properties: { pack: { type: "boolean" } } },
    tags: { items: { enum: ["a", "b"] } },
  },
};

/** What is suggested where the "|" stands, and what it stands in for. */
function at(text: string): string[] {
  return suggestionsAt(kSchema, text.replace("|", ""), text.indexOf("|"))?.options.map((o) => o.label) ?? [];
}

describe("suggestionsAt", () => {
  it("has the file's keys at its beginning, with what they are", () => {
    expect(at("|")).toEqual(["name", "base", "rows", "only_if", "resources", "tags"]);
    expect(at("name: a\nba|")).toContain("base");
    expect(suggestionsAt(kSchema, "na", 2)).toMatchObject({
      from: 0,
      options: [{ label: "name", kind: "key", description: "Name of the sweep." }, {}, {}, {}, {}, {}],
    });
  });
  it("has the keys of the mapping that a line is in", () => {
    expect(at("base:\n  |")).toEqual(["model"]);
    expect(at("base:\n  model:\n    # why\n\n    pre|")).toEqual(["attention", "preset"]);
    expect(at("base:\n  model:\n    preset: swin-t\n    |")).toEqual(["attention", "preset"]);
    expect(at("base:\n  model:\n    attention:\n      kernel: softmax\n    |")).toEqual([
      "attention",
      "preset",
    ]);
  });
  it("has a key's values", () => {
    expect(at("base:\n  model:\n    preset: |")).toEqual(["simple-vit-ti", "swin-t"]);
    expect(at("resources:\n  pack: t|")).toEqual(["true", "false"]);
    expect(at("base:\n  model:\n    attention: |")).toEqual(["none"]);
    expect(at("name: |")).toEqual([]);
  });
  it("knows lists, also those that stand as far left as their key", () => {
    for (const indent of ["  ", ""]) {
      expect(at(`rows:\n${indent}- |`)).toEqual(["id", "label", "set"]);
      expect(at(`rows:\n${indent}- id: a\n${indent}  |`)).toEqual(["id", "label", "set"]);
      expect(at(`rows:\n${indent}- id: a\n${indent}- id: b\n${indent}  set:\n${indent}    |`)).toEqual([
        "model.attention.kernel",
      ]);
      expect(at(`tags:\n${indent}- |`)).toEqual(["a", "b"]);
    }
  });
  it("knows brackets of one line", () => {
    expect(at("base:\n  model: {|")).toEqual(["attention", "preset"]);
    expect(at("base:\n  model: {preset: swin-t, attention: {kernel: |")).toEqual(["softmax", "gaussian"]);
    expect(at("base: {model: {preset: s|}}")).toEqual(["simple-vit-ti", "swin-t"]);
    expect(at("rows:\n  - {id: a, set: {|")).toEqual(["model.attention.kernel"]);
    expect(at("rows: [{id: a}, {l|")).toEqual(["id", "label", "set"]);
    expect(at("tags: [a, |")).toEqual(["a", "b"]);
  });
  it("takes the names that a mapping's keys may have", () => {
    expect(at("only_if:\n  x:\n    |")).toEqual(["data.name", "model.preset"]);
  });
  it("is silent where nothing is known: texts, comments, what the schema does not have", () => {
    for (const text of ["name: 'a|", "# na|", "nobody:\n  |", "name: a b|", "- - - |", "}{][|", ": : |"])
      expect(at(text)).toEqual([]);
  });
  it("ends for any beginning of any text", () => {
    const text = "rows:\n- {id: a, set: {b: [1, {c: 'd'}]}}\n-  - - x:\n\t y: |\n   z\n\"q\": 1\n";
    for (let i = 0; i <= text.length; ++i) suggestionsAt(kSchema, text, i);
  });
});
