// SPDX-License-Identifier: Apache-2.0
// What people see while they write a sweep file: yaml-language-server, which VS Code, Neovim, Helix and others run, with the
// schema that `ablate schema` prints, named in the first line of the file as the docs say.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { schema } from "./schema.mjs";

const settings = {
  yaml: { validate: true, completion: true, hover: true, schemaStore: { enable: false }, yamlVersion: "1.2" },
  http: {},
  "[yaml]": {},
  editor: {},
  files: {},
};

/** A language server, spoken to as an editor does: requests, notifications, and its answers by number. */
class Server {
  #process;
  #buffer = Buffer.alloc(0);
  #answers = new Map();
  #watchers = new Map();
  #number = 0;

  constructor() {
    const program = fileURLToPath(new URL("node_modules/yaml-language-server/bin/yaml-language-server", import.meta.url));
    this.#process = spawn(process.execPath, [program, "--stdio"], { stdio: ["pipe", "pipe", "inherit"] });
    this.#process.stdout.on("data", (bytes) => this.#read(bytes));
  }
  request(method, params) {
    const id = ++this.#number;
    this.#send({ id, method, params });
    return new Promise((resolve, reject) => this.#answers.set(id, { resolve, reject }));
  }
  notify(method, params) {
    this.#send({ method, params });
  }
  /** The next diagnostics of the document. */
  diagnostics(uri) {
    return new Promise((resolve) => this.#watchers.set(uri, resolve));
  }
  async end() {
    await this.request("shutdown", null);
    this.notify("exit", null);
  }

  #send(message) {
    const text = JSON.stringify({ jsonrpc: "2.0", ...message });
    this.#process.stdin.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  }
  #read(bytes) {
    this.#buffer = Buffer.concat([this.#buffer, bytes]);
    for (;;) {
      const end = this.#buffer.indexOf("\r\n\r\n");
      if (end < 0) return;
      const length = Number(/Content-Length: (\d+)/i.exec(this.#buffer.subarray(0, end).toString())[1]);
      if (this.#buffer.length < end + 4 + length) return;
      const message = JSON.parse(this.#buffer.subarray(end + 4, end + 4 + length).toString());
      this.#buffer = this.#buffer.subarray(end + 4 + length);
      this.#hear(message);
    }
  }
  #hear(message) {
    if (message.method === "workspace/configuration")
      this.#send({ id: message.id, result: message.params.items.map((item) => settings[item.section] ?? null) });
    else if (message.method === "textDocument/publishDiagnostics") this.#watchers.get(message.params.uri)?.(message.params.diagnostics);
    else if (message.method && message.id !== undefined) this.#send({ id: message.id, result: null });
    else if (message.error) this.#answers.get(message.id)?.reject(new Error(message.error.message));
    else this.#answers.get(message.id)?.resolve(message.result);
  }
}

describe("an editor with yaml-language-server", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "ablate-editor-"));
  const uri = (name) => pathToFileURL(path.join(folder, name)).href;
  let server;
  let number = 0;

  before(async () => {
    writeFileSync(path.join(folder, "sweep.schema.json"), JSON.stringify(schema("sweep")));
    server = new Server();
    await server.request("initialize", {
      processId: process.pid,
      rootUri: pathToFileURL(folder).href,
      capabilities: { workspace: { configuration: true }, textDocument: { completion: { completionItem: { snippetSupport: true } } } },
      initializationOptions: {},
    });
    server.notify("initialized", {});
  });
  after(async () => {
    await server.end();
    rmSync(folder, { recursive: true });
  });

  /** Opens the text, in which `|` is the cursor. */
  function open(text) {
    const at = text.indexOf("|");
    const lines = text.slice(0, Math.max(at, 0)).split("\n");
    const document = { uri: uri(`${++number}.yaml`), languageId: "yaml", version: 1, text: at < 0 ? text : text.slice(0, at) + text.slice(at + 1) };
    const diagnostics = server.diagnostics(document.uri);
    server.notify("textDocument/didOpen", { textDocument: document });
    const place = { textDocument: { uri: document.uri }, position: { line: lines.length - 1, character: lines.at(-1).length } };
    return { diagnostics, place };
  }
  async function offered(text) {
    const answer = await server.request("textDocument/completion", open(text).place);
    return answer.items.map((item) => item.label);
  }
  const includes = (labels, ...expected) => {
    for (const label of expected) assert.ok(labels.includes(label), `${label} is not among ${labels.join(", ")}`);
  };

  const head = "# yaml-language-server: $schema=sweep.schema.json\nablate: 1\nname: s\n";
  const base = `${head}base:\n  model: {preset: simple-vit-ti}\n  data: {name: shapes}\n  recipe: {use: demo}\n`;

  it("offers the keys of a sweep", async () => includes(await offered(`${head}|\n`), "base", "rows", "factors", "seeds", "table"));
  it("offers the sections and keys of a trial", async () => {
    includes(await offered(`${head}base:\n  |\n`), "model", "data", "recipe");
    includes(await offered(`${head}base:\n  model:\n    |\n`), "preset", "attention", "key", "embedding");
    includes(await offered(`${head}base:\n  model:\n    attention:\n      |\n`), "kernel", "probe", "share", "layers", "elsewhere");
  });
  it("offers the values of a key", async () => {
    includes(await offered(`${head}base:\n  model:\n    attention:\n      kernel: |\n`), "dot", "gaussian", "none");
    includes(await offered(`${head}base:\n  model:\n    preset: |\n`), "simple-vit-s", "xcit_nano_12_p16_224");
  });
  it("offers dotted keys in a row and as factors, and their values", async () => {
    includes(await offered(`${base}rows:\n  - id: a\n    set:\n      |\n`), "model.attention.share", "recipe.lr", "model");
    includes(await offered(`${base}rows:\n  - id: a\n    set:\n      model.attention.kernel: |\n`), "dot", "gaussian");
    includes(await offered(`${base}factors:\n  |\n`), "model.attention.groups", "recipe.lr");
  });
  it("offers the keys of a column and its words", async () => {
    includes(await offered(`${base}rows: [{id: a}]\ntable:\n  columns:\n    - name: acc\n      |\n`), "metric", "count", "take", "better");
    includes(await offered(`${base}rows: [{id: a}]\ntable:\n  columns:\n    - name: acc\n      metric: |\n`), "val/top1");
  });
  it("offers keys that are tuned, and what a range is made of", async () => {
    includes(await offered(`${base}rows: [{id: a}]\ntune:\n  |\n`), "budget", "metric", "recipe.lr");
    includes(await offered(`${base}rows: [{id: a}]\ntune:\n  recipe.lr:\n    |\n`), "min", "max", "log");
    includes(await offered(`${base}search:\n  over:\n    |\n`), "model.dim", "recipe.lr");
  });
  it("explains a key", async () => {
    const { diagnostics, place } = open(`${head}base:\n  model: {preset: simple-vit-ti}\n  recipe:\n    use: demo\n    ep|ochs: 3\n`);
    await diagnostics;
    const answer = await server.request("textDocument/hover", place);
    assert.match(answer.contents.value, /Passes over the training images/);
  });
  it("finds nothing wrong with a right file", async () => {
    assert.deepEqual(await open(`${base}rows:\n  - {id: a, set: {recipe.lr: 1e-3}}\nseeds: 3\n`).diagnostics, []);
  });
  it("names a misspelt key at its place", async () => {
    const found = await open(`${base}rows:\n  - {id: a, set: {model.attention.shares: QQQQQ}}\nsedes: 3\n`).diagnostics;
    const messages = found.map(({ message, range }) => `${range.start.line + 1}:${range.start.character + 1}: ${message}`).join("\n");
    assert.match(messages, /^9:19: .*model\.attention\.shares.* is not allowed/m);
    assert.match(messages, /^10:1: .*sedes.* is not allowed/m);
  });
  it("names a wrong value", async () => {
    const found = await open(`${head}base:\n  model: {preset: simple-vit-ti, attention: {kernel: gauss}}\nrows: [{id: a}]\n`).diagnostics;
    assert.ok(found.some(({ message }) => /gaussian/.test(message)), JSON.stringify(found));
  });
});
