// SPDX-License-Identifier: Apache-2.0
import type { RunDetail } from "../generated/ablate";

/** A number as it is written in its document: `1.0` and 2^60 are others in JavaScript. */
class Written {
  constructor(readonly text: string) {}
}

/** An object of JSON; of a text that is none, an empty one. */
export function parsed(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** The same with its numbers as they are written, where the browser tells. */
function parsedAsWritten(text: string): Record<string, unknown> {
  const asWritten = (_key: string, value: unknown, context?: { source?: string }): unknown =>
    typeof value === "number" ? new Written(context?.source ?? String(value)) : value;
  return JSON.parse(text, asWritten as (key: string, value: unknown) => unknown) as Record<string, unknown>;
}

function dumped(value: unknown): string {
  if (value instanceof Written) return value.text;
  if (Array.isArray(value)) return `[${value.map(dumped).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, each]) => `${JSON.stringify(key)}:${dumped(each)}`)
    .join(",")}}`;
}

/** A word of a shell's line that stands for itself. */
export function quoted(word: string): string {
  return /^[\w@%+:,./-][\w@%+=:,./-]*$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** An argument of a command as a shell's word: its places filled in as a worker does (base/placeholders.cc). */
function filled(argument: string, document: Record<string, unknown>): string {
  const variables: Record<string, string> = { run_dir: "ABLATE_RUN_DIR", data: "ABLATE_DATA" };
  const parts: { text: string; variable?: true }[] = [];
  const add = (text: string): void => {
    const last = parts.at(-1);
    if (last && !last.variable) last.text += text;
    else parts.push({ text });
  };
  const place = /\{\{|(?<!\$)\{(seed|run_dir|data|params\.[\w.-]+)\}/g;
  let at = 0;
  for (const found of argument.matchAll(place)) {
    add(argument.slice(at, found.index));
    at = found.index + found[0].length;
    const name = found[1];
    const variable = name && variables[name];
    if (variable) parts.push({ text: variable, variable: true });
    else if (name) add(textOf(name, document));
    else add("{");
  }
  add(argument.slice(at));
  if (parts.length === 1) return quoted(parts[0]!.text);
  return parts.map(({ text, variable }) => (variable ? `"$${text}"` : text && quoted(text))).join("");
}

/** Of "params.optimiser.name": a text is itself, anything else as JSON writes it. */
function textOf(name: string, document: Record<string, unknown>): string {
  const value = name
    .split(".")
    .reduce<unknown>((inner, key) => (inner as Record<string, unknown> | undefined)?.[key], document);
  return typeof value === "string" ? value : dumped(value ?? "");
}

/** What trains a run's trial again: `lines` for a shell, and what is to be filled in by whoever types them. */
export interface Again {
  lines: string;
  notes: string[];
}

export function trainAgain(detail: RunDetail): Again {
  return Array.isArray(parsed(detail.config_json).argv) ? commandAgain(detail) : trainerAgain(detail);
}

/** The document goes on to the byte: printf takes its argument as it is. */
const written = (detail: RunDetail, file: string): string =>
  `printf '%s\\n' ${quoted(detail.config_json)} > ${file}`;

function trainerAgain(detail: RunDetail): Again {
  const config = parsed(detail.config_json);
  const environment = parsed(detail.environment_json);
  const words = ["ablate-trainer train --config trial.json --run-dir run"];
  const notes: string[] = [];
  const ranks = Number(environment.ranks) || 1;
  const device = typeof environment.device === "string" ? environment.device : "cpu";
  const threads = (Number(environment.threads) || 0) * (device === "cpu" ? ranks : 1);
  if (threads > 0) words.push(`--threads ${threads}`);
  if (ranks > 1) words.push(`--ranks ${ranks}`);
  if (device !== "cpu") words.push(`--device ${quoted(ranks > 1 ? "cuda" : device)}`);
  const data = (config.data as { name?: string } | undefined)?.name;
  // images that the trainer draws have no folder
  if (data && data !== "shapes") {
    words.push("--data-root FOLDER");
    notes.push(`FOLDER: where ${data} is on your machine`);
  }
  for (const name of new Set([
    ...Object.keys((environment.weights as object | undefined) ?? {}),
    ...detail.sources.map((source) => source.name),
  ])) {
    words.push(`--weights ${quoted(`${name}=FILE`)}`);
    notes.push(`${name}=FILE: its weights`);
  }
  const plugin = (config.model as { plugin?: { name?: string } } | undefined)?.plugin?.name;
  if (plugin) {
    words.push(`--plugin ${quoted(`${plugin}=FILE`)}`);
    notes.push(`${plugin}=FILE: the plugin's library`);
  }
  return { lines: `${written(detail, "trial.json")}\n${words.join(" ")}`, notes };
}

function commandAgain(detail: RunDetail): Again {
  const document = parsedAsWritten(detail.config_json);
  const argv = document.argv as string[];
  const environment = parsed(detail.environment_json);
  const folder = typeof document.folder === "string" && document.folder;
  const usesData = detail.data_fingerprint !== "" || argv.some((argument) => argument.includes("{data}"));
  const gpus = detail.resources?.gpu !== undefined;
  const variables = [
    'ABLATE_RUN_DIR="$PWD/run"',
    'ABLATE_CONFIG="$PWD/run/config.json"',
    `ABLATE_SEED=${quoted(dumped(document.seed ?? 0))}`,
    `ABLATE_DATA=${usesData ? "FOLDER" : ""}`,
    "ABLATE_RESUME=",
    "ABLATE_RESUME_SHA256=",
    `ABLATE_THREADS=${Number(environment.threads) || '"$(nproc)"'}`,
    `ABLATE_DEVICE=${gpus ? "cuda:0" : "cpu"}`,
  ];
  return {
    lines: [
      `mkdir run && ${written(detail, "run/config.json")}`,
      `export ${variables.join(" ")}`,
      `(cd ${folder ? quoted(folder) : "run"} && exec ${argv.map((each) => filled(each, document)).join(" ")})`,
    ].join("\n"),
    notes: [
      ...(folder && detail.summary.host ? [`${folder} is a folder of ${detail.summary.host}`] : []),
      ...(usesData ? ["replace FOLDER with the folder of its data on your machine"] : []),
    ],
  };
}

/** Whether the trial is, by this attempt or another one. */
export function isCompleted(detail: RunDetail): boolean {
  return detail.attempts.some(({ state }) => state === "RUN_STATE_COMPLETED");
}

/** What has the service run completed trials of a row again, or a failed one: for each sweep that has the run. */
export function inService(detail: RunDetail): string[] {
  const completed = isCompleted(detail);
  const guard = (word: string): string => (word.startsWith("-") ? "-- " : "");
  return detail.summary.rows.map(({ sweep, row, seed }) =>
    completed
      ? `ablate rerun ${guard(sweep) || guard(row)}${quoted(sweep)} ${quoted(row)}`
      : `ablate retry ${quoted(`--row=${row}`)} ${quoted(`--seed=${seed}`)} ${guard(sweep)}${quoted(sweep)}`,
  );
}
