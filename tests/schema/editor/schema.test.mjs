// SPDX-License-Identifier: Apache-2.0
// The schemas that `ablate schema` prints: every sweep file of the tree is valid by them, and what the parser refuses by
// a key or a value alone is not.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, describe, it } from "node:test";
import Ajv from "ajv";
import YAML from "yaml";
import { program, schema, source } from "./schema.mjs";

const ajv = new Ajv({ strict: true, strictTypes: false, strictRequired: false, allErrors: false, verbose: false });
ajv.addVocabulary(["x-families"]);
const isSweep = ajv.compile(schema("sweep"));
const areScales = ajv.compile(schema("scales"));
const isTrial = ajv.compile(schema("config"));

const read = (file) => readFileSync(path.join(source, file), "utf8");
const parsed = (text) => YAML.parse(text, { version: "1.2", uniqueKeys: true });
const files = (folder, end) =>
  readdirSync(path.join(source, folder), { recursive: true })
    .filter((name) => name.endsWith(end))
    .map((name) => path.join(folder, name))
    .sort();
const blocks = (page) =>
  [...read(page).matchAll(/^```yaml\n([^]*?)^```/gm)].map((match) => match[1]).filter((text) => !text.startsWith("# scales"));

const folder = mkdtempSync(path.join(tmpdir(), "ablate-schema-"));
after(() => rmSync(folder, { recursive: true }));

/** What the program itself says of the file; nothing where it takes it. */
function problems(text) {
  const file = path.join(folder, "sweep.yaml");
  writeFileSync(file, text);
  const { status, stderr } = spawnSync(program, ["validate", file, "--home", folder], { encoding: "utf8" });
  assert.ok(status === 0 || status === 2, stderr);
  return status === 0 ? "" : stderr;
}

const complain = (validate) => JSON.stringify(validate.errors?.slice(0, 3));

describe("what the tree has is valid", () => {
  const sweeps = [...files("sweeps", ".yaml"), ...files("docs/examples", ".yaml")].filter((name) => !name.endsWith("scales.yaml"));
  it("has sweeps", () => assert.ok(sweeps.length > 30));
  for (const file of sweeps) it(file, () => assert.ok(isSweep(parsed(read(file))), complain(isSweep)));
  for (const file of files("sweeps", "scales.yaml")) it(file, () => assert.ok(areScales(parsed(read(file))), complain(areScales)));
  for (const page of [...files("docs", ".md"), "README.md"])
    for (const [number, text] of blocks(page).entries())
      if (text.startsWith("ablate: 1"))
        it(`${page}, sweep ${number + 1}`, () => assert.ok(isSweep(parsed(text)), complain(isSweep)));
});

const good = `ablate: 1
name: s
base:
  model: {preset: simple-vit-ti, attention: {kernel: gaussian, probe: inside}}
  data: {name: shapes}
  recipe: {use: demo}
rows:
  - {id: a}
  - {id: b, set: {model.attention.share: QQKVW}, paper: {acc: "61.13"}}
seeds: 3
table: {baseline: a, columns: [{name: acc, metric: val/top1}]}
`;
const factors = good.replace(/rows:[^]*seeds/, "factors:\n  recipe.lr: [0.001, 0.002]\nseeds").replace("baseline: a, ", "");
const command = `ablate: 1
name: s
command: {argv: [python3, train.py, "--lr={params.lr}"], params: {lr: 0.1}}
factors:
  params.lr: [0.1, 0.2]
table: {columns: [{name: acc, metric: accuracy}]}
`;
const edit = (text, from, to) => {
  assert.ok(text.includes(from), from);
  return text.replace(from, to);
};

describe("both spellings of a key are valid", () => {
  const spellings = {
    "nested in base, dotted in a row": good,
    "a mapping in a row": edit(good, "{model.attention.share: QQKVW}", "{model.attention: {share: QQKVW, groups: 1}}"),
    "nested from the top": edit(good, "{model.attention.share: QQKVW}", "{model: {attention: {share: QQKVW}}, recipe: {epochs: 2}}"),
    "by layer": edit(good, "{model.attention.share: QQKVW}", "{model.attention: {layers: 1-2, share: QQKVW, elsewhere: {kernel: dot, probe: none}}}"),
    "a list by layer": edit(good, "{model.attention.share: QQKVW}", "{model.attention.elsewhere.kernel: dot, model.attention.layers: 1-2}"),
    factors,
    "levels with labels": edit(factors, "[0.001, 0.002]", "[{label: low, value: 0.001}, {label: high, value: 1e-2}]"),
    "a mapping as a level": edit(factors, "recipe.lr: [0.001, 0.002]", "model.attention: [{label: Orig, value: {kernel: dot, probe: none}}]"),
    command,
    "ranges that are tuned": `${good}tune: {recipe.lr: {min: 1e-4, max: 1e-2, log: true}, recipe.weight_decay: [0.01, 0.05], budget: 4, metric: val/loss, on: seeds 100-101}\n`,
    "a search": good.replace(/rows:[^]*/, "search: {over: {recipe.lr: [0.1, 0.2], recipe.batch: {min: 32, max: 128, log: true, integer: true}}, trials: 4, metric: val/loss, seeds: seeds 0-1}\n"),
    "a numeric name": edit(good, "name: s", "name: 2026"),
  };
  for (const [name, text] of Object.entries(spellings))
    it(name, () => {
      assert.ok(isSweep(parsed(text)), complain(isSweep));
      assert.equal(problems(text), "");
    });
});

describe("what the parser refuses by a key or a value is refused", () => {
  const bad = {
    "a misspelt key at the top": edit(good, "seeds: 3", "seed: 3"),
    "a misspelt key of the model": edit(good, "preset: simple-vit-ti", "presett: simple-vit-ti"),
    "a misspelt key in attention": edit(good, "kernel: gaussian", "kernell: gaussian"),
    "a misspelt dotted key": edit(good, "model.attention.share", "model.attention.shares"),
    "an unknown kernel": edit(good, "kernel: gaussian", "kernel: gauss"),
    "an unknown preset": edit(good, "preset: simple-vit-ti", "preset: simple-vit-xxl"),
    "an unknown recipe": edit(good, "use: demo", "use: demonstration"),
    "a row without id": edit(good, "- {id: a}", "- {label: a}"),
    "a misspelt key of a row": edit(good, "- {id: a}", "- {id: a, labels: x}"),
    "an id with a space": edit(good, "- {id: a}", "- {id: a b}").replace("baseline: a", "baseline: b"),
    "no version": edit(good, "ablate: 1\n", ""),
    "another version": edit(good, "ablate: 1", "ablate: 2"),
    "no name": edit(good, "name: s\n", ""),
    "neither rows nor factors": good.replace(/rows:[^]*seeds/, "seeds").replace("baseline: a, ", ""),
    "no rows": good.replace(/rows:[^]*seeds/, "rows: []\nseeds").replace("baseline: a, ", ""),
    "seeds below one": edit(good, "seeds: 3", "seeds: 0"),
    "a negative seed": edit(good, "seeds: 3", "seeds: [-1]"),
    "a seed twice": edit(good, "seeds: 3", "seeds: [1, 1]"),
    "a rule for seeds without max": edit(good, "seeds: 3", 'seeds: {min: 2, until: "ci(acc) < 1"}'),
    "a rule for seeds of another form": edit(good, "seeds: 3", "seeds: {min: 2, max: 3, until: soon}"),
    "a column without a source": edit(good, "{name: acc, metric: val/top1}", "{name: acc}"),
    "a column with two sources": edit(good, "{name: acc, metric: val/top1}", "{name: acc, metric: val/top1, printed: true}"),
    "a metric that no trial emits": edit(good, "metric: val/top1", "metric: val/top2"),
    "an unknown count": edit(good, "metric: val/top1", "count: params.most"),
    "a command without columns": edit(command, "table: {columns: [{name: acc, metric: accuracy}]}\n", ""),
    "a count of a command": edit(command, "metric: accuracy", "count: params.all"),
    "an unknown take": edit(good, "metric: val/top1", "metric: val/top1, take: first"),
    "digits beyond ten": edit(good, "metric: val/top1", "metric: val/top1, digits: 11"),
    "a misspelt key of the table": edit(good, "baseline: a", "base_line: a"),
    "an unknown test": edit(good, "baseline: a", "baseline: a, compare: {test: student}"),
    "a mark that papers do not have": edit(good, '"61.13"', '{text: "61.13", mark: red}'),
    "a misspelt key of a value": edit(good, '"61.13"', '{text: "61.13", marks: bold}'),
    "a base and a command": edit(good, "rows:", "command: {argv: [a]}\nrows:"),
    "a param without a command": edit(good, "model.attention.share: QQKVW", "params.lr: 1"),
    "a setting of a trial in a command": edit(command, "params.lr: [0.1, 0.2]", "recipe.lr: [0.1, 0.2]"),
    "a command without argv": edit(command, "argv: [python3, train.py, \"--lr={params.lr}\"], ", ""),
    "reuse without version": edit(command, "params: {lr: 0.1}", "params: {lr: 0.1}, reuse: true"),
    "levels that are no list": edit(factors, "[0.001, 0.002]", "0.001"),
    "no levels": edit(factors, "[0.001, 0.002]", "[]"),
    "a level below its range": edit(factors, "[0.001, 0.002]", "[-1]"),
    "a factor that is no key": edit(factors, "recipe.lr", "recipe.rate"),
    "a level with a misspelt label": edit(factors, "[0.001, 0.002]", "[{lable: a, value: 0.001}]"),
    "a zip of one": edit(factors, "seeds", "zip: [[recipe.lr]]\nseeds"),
    "an empty exclusion": edit(factors, "seeds", "exclude: [{}]\nseeds"),
    "a range without max": `${good}tune: {recipe.lr: {min: 1e-4}, budget: 4, metric: val/loss}\n`,
    "a misspelt key of a range": `${good}tune: {recipe.lr: {min: 1e-4, max: 1e-2, logs: true}, budget: 4, metric: val/loss}\n`,
    "a misspelt key of tune": `${good}tune: {recipe.lr: {min: 1e-4, max: 1e-2}, budgets: 4, metric: val/loss}\n`,
    "tuning without a metric": `${good}tune: {recipe.lr: {min: 1e-4, max: 1e-2}, budget: 4}\n`,
    "a model that is tuned": `${good}tune: {model.dim: [64, 128], budget: 2, metric: val/loss}\n`,
    "an unknown method": `${good}tune: {recipe.lr: {min: 1e-4, max: 1e-2}, budget: 4, metric: val/loss, method: grid}\n`,
    "a search without trials": `${good.replace(/rows:[^]*seeds/, "search: {over: {recipe.lr: [0.1, 0.2]}, metric: val/loss}\nseeds")}`,
    "rows beside a search": `${good}search: {over: {recipe.lr: [0.1, 0.2]}, trials: 4, metric: val/loss}\n`,
    "too many GPUs": good + "resources: {gpus: 1025}\n",
    "GPUs without a most": good + "resources: {gpus: {min: 1}}\n",
    "no worker": good + "resources: {nodes: 0}\n",
    "a misspelt resource": good + "resources: {gpu: 1}\n",
    "a retry of text": good + "retry: {max: often}\n",
    "an unknown kind of failure": good + "retry: {on: {weather: 1}}\n",
    "a duration without unit": good + "limits: {time: 90}\n",
    "a size of another unit": good + "limits: {log: 64MB}\n",
    "nan otherwise": good + "limits: {nan: maybe}\n",
    "a scale without rules": good + "scale: {name: small, says: small}\n",
    "a rule without a reason": good + "scale: {name: small, says: small, rules: [{drop: data}]}\n",
    "a rule of no trial": good + "scale: {name: small, says: small, rules: [{why: w, when: {row: a}, drop: data}]}\n",
    "a pivot by nothing": edit(good, "baseline: a", "baseline: a, pivot: {columns: [acc]}"),
    "an unknown thing to show": edit(good, "baseline: a", "baseline: a, show: [p]"),
    "a source without row": edit(good, "- {id: a}", "- {id: a, from: {take: best}}"),
    "not trained without why": edit(good, "- {id: a}", "- {id: a, not_trained: {kind: task}}").replace("baseline: a", "baseline: b"),
    "elsewhere without layers": edit(good, "{model.attention.share: QQKVW}", "{model.attention: {elsewhere: {kernel: dot}}}"),
  };
  for (const [name, text] of Object.entries(bad))
    it(name, () => {
      assert.notEqual(problems(text), "", "the parser takes it");
      assert.ok(!isSweep(parsed(text)), "the schema takes it");
    });
});

describe("of the parser's own wrong files those are refused that one key or value makes wrong", () => {
  const folder = "tests/sweeps/fixtures/bad";
  const takeSeveral = new Set([
    "command-metric-columns",
    "command-metrics-last",
    "duplicate-row-id",
    "exclude-removes-all",
    "groups-do-not-divide",
    "misspelt-param",
    "more-gpus-than-a-batch-has-pairs",
    "more-gpus-than-a-part-has-images",
    "too-many-combinations",
    "too-many-trials",
    "two-data-sets",
    "unknown-baseline",
    "unreported-metric",
  ]);
  for (const file of files(folder, ".yaml")) {
    const name = path.basename(file, ".yaml");
    let document;
    try {
      document = parsed(read(file));
    } catch {
      continue; // no YAML, for any reader
    }
    it(name, () => assert.equal(isSweep(document), takeSeveral.has(name), complain(isSweep)));
  }
});

describe("scales, trials and the program", () => {
  const scales = { scales: { small: { says: "small", rules: [{ why: "w", drop: "data", set: { data: { name: "cifar10" } } }] } } };
  it("a scale is valid", () => assert.ok(areScales(scales), complain(areScales)));
  it("its name stands before it, and not in it", () => {
    assert.ok(!areScales({ scales: { small: { ...scales.scales.small, name: "small" } } }));
  });
  it("a misspelt key of a rule is refused", () => {
    assert.ok(!areScales({ scales: { small: { says: "small", rules: [{ why: "w", drops: "data" }] } } }));
  });
  it("a file comes from standard input too, which is a socket here", () => {
    const { status, stderr } = spawnSync(program, ["validate", "-", "--home", folder], { input: good, encoding: "utf8" });
    assert.equal(status, 0, stderr);
  });
  const trial = { model: { preset: "simple-vit-ti" }, data: { name: "shapes" }, recipe: { use: "demo" }, seed: 1 };
  it("a trial is valid", () => assert.ok(isTrial(trial), complain(isTrial)));
  it("one without a recipe is not", () => assert.ok(!isTrial({ ...trial, recipe: undefined })));
});
