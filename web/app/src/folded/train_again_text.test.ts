// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import type { RunDetail } from "../generated/ablate";
import { inService, quoted, trainAgain } from "./train_again_text";

function detailOf(config: string, environment: object = {}, more: object = {}): RunDetail {
  return {
    config_json: config,
    environment_json: JSON.stringify(environment),
    sources: [],
    data_fingerprint: "",
    summary: { state: "RUN_STATE_COMPLETED", host: "anvil", rows: [] },
    ...more,
  } as unknown as RunDetail;
}

describe("what a shell takes", () => {
  test.each([
    ["--lr=0.1", "--lr=0.1"],
    ["", "''"],
    ["a b", "'a b'"],
    ["it's $HOME", "'it'\\''s $HOME'"],
    ["=ls", "'=ls'"],
    ["~", "'~'"],
    ["a\nb", "'a\nb'"],
    ["lr=1e-3;rm -r /", "'lr=1e-3;rm -r /'"],
  ])("%j is %j", (word, shown) => expect(quoted(word)).toBe(shown));
});

describe("of a trial of the trainer", () => {
  test("its document as it is, and what the run had of its machine", () => {
    const config = `{"data":{"name":"shapes"},"recipe":{"lr":1e-05},"seed":0}`;
    expect(trainAgain(detailOf(config, { device: "cpu", threads: 2, ranks: 1 }))).toEqual({
      lines: `printf '%s\\n' '${config}' > trial.json\nablate-trainer train --config trial.json --run-dir run --threads 2`,
      notes: [],
    });
  });
  test("what lies elsewhere is to be filled in", () => {
    const config = `{"data":{"name":"cifar10"},"model":{"plugin":{"name":"mine"}}}`;
    const again = trainAgain(
      detailOf(config, { device: "cuda", threads: 4, ranks: 2, weights: { pretrained: "1234" } }),
    );
    expect(again.lines.split("\n")[1]).toBe(
      "ablate-trainer train --config trial.json --run-dir run --threads 4 --ranks 2 --device cuda " +
        "--data-root FOLDER --weights pretrained=FILE --plugin mine=FILE",
    );
    expect(again.notes).toHaveLength(3);
  });
  test("a document that cannot be read is still written", () =>
    expect(trainAgain(detailOf("{")).lines).toContain("printf '%s\\n' '{' > trial.json"));
});

describe("of a command", () => {
  const last = (argv: string[], more: object = {}): string => {
    const config = JSON.stringify({
      argv,
      params: { lr: 0.5, name: "it's", net: { depth: 4 } },
      seed: 7,
      ...more,
    });
    return trainAgain(detailOf(config)).lines.split("\n").at(-1)!;
  };
  test("its places are filled in, each argument one word", () => {
    expect(
      last(["python", "--lr={params.lr}", "{params.name}", "{params.net}", "{params.net.depth}", "{seed}"]),
    ).toBe(`(cd run && exec python --lr=0.5 'it'\\''s' '{"depth":4}' 4 7)`);
  });
  test("folders are variables, other braces the program's", () => {
    expect(
      last(["./x", "{run_dir}/a b", "d={data}", "{{seed}", "${seed}", "{other}", "{checkpoint}"], {
        folder: "/my study",
      }),
    ).toBe(
      `(cd '/my study' && exec ./x "$ABLATE_RUN_DIR"'/a b' d="$ABLATE_DATA" '{seed}' '\${seed}' '{other}' '{checkpoint}')`,
    );
  });
  test("numbers are as they are written", () => {
    const config = `{"argv":["x","{params.a}"],"params":{"a":[1.0,1e-05]},"seed":1152921504606846977}`;
    const lines = trainAgain(detailOf(config)).lines;
    expect(lines).toContain(`'${config}'`);
    if (JSON.parse("1.0", (_key, _value, context?: { source: string }) => context?.source) !== "1.0") return; // an older engine
    expect(lines).toContain("'[1.0,1e-05]'");
    expect(lines).toContain("ABLATE_SEED=1152921504606846977 ");
  });
});

test("completed rows are rerun in each of their sweeps; any other trial is retried alone", () => {
  const rows = [
    { sweep: "s", row: "a b", seed: "3" },
    { sweep: "t", row: "-x", seed: "-1" },
  ];
  const of = (state: string): RunDetail =>
    detailOf("{}", {}, { summary: { rows }, attempts: [{ state: "RUN_STATE_LOST" }, { state }] });
  expect(inService(of("RUN_STATE_COMPLETED"))).toEqual(["ablate rerun s 'a b'", "ablate rerun -- t -x"]);
  expect(inService(of("RUN_STATE_FAILED"))).toEqual([
    "ablate retry '--row=a b' --seed=3 s",
    "ablate retry --row=-x --seed=-1 t",
  ]);
});
