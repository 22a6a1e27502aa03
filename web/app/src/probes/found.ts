// SPDX-License-Identifier: Apache-2.0
import { decimals, plain, signed } from "../format";

export interface Axis {
  name: string;
  places: string[];
}
/** Numbers along named axes: row by row, the last axis the fastest. */
export interface FoundArray {
  name: string;
  axes: Axis[];
  values: number[];
}
export interface FoundValue {
  name: string;
  value: number;
}
/** What a probe found, as it is stored: `found_json` of the API. */
export interface Found {
  probe: string;
  settings: { name: string; text: string }[];
  values: FoundValue[];
  /** Only of a read that names the probe. */
  arrays: FoundArray[];
  pictures: string[];
  notes: string[];
  /** Why it found nothing, or empty. */
  missing: string;
}

type Json = Record<string, unknown>;

const kNoFound: Found = {
  ...{ probe: "", settings: [], values: [], arrays: [], pictures: [], notes: [] },
  missing: "",
};

/** Whether a run of this configuration can be probed: one of a `command:` cannot, nor one that is no classifier. */
export function canBeProbed(config: string): boolean {
  try {
    const document = JSON.parse(config);
    return !("argv" in document || "task" in document); // a segmenter's or a detector's predictions come unasked
  } catch {
    return false;
  }
}

/** A program of somebody's own writes what it likes: whatever is not as expected is left out. */
export function readFound(text: string): Found {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    return { ...kNoFound, missing: "what is stored of it cannot be read" };
  }
  const found = objectOf(read);
  return {
    probe: textOf(found.probe),
    settings: Object.entries(objectOf(found.settings)).map(([name, value]) => ({
      name,
      text: settingText(value),
    })),
    values: Object.entries(objectOf(found.values)).map(([name, value]) => ({ name, value: numberOf(value) })),
    arrays: Object.entries(objectOf(found.arrays)).flatMap(([name, value]) => arrayOf(name, objectOf(value))),
    pictures: listOf(found.pictures).map((picture) => textOf(objectOf(picture).name)),
    notes: listOf(found.notes).map(textOf),
    missing: withoutPrefix(textOf(found.missing), `${textOf(found.probe)}: `),
  };
}

function arrayOf(name: string, array: Json): FoundArray[] {
  const axes = listOf(array.axes).map((axis) => ({
    name: textOf(objectOf(axis).name),
    places: listOf(objectOf(axis).places).map(textOf),
  }));
  const values = listOf(array.values).map(numberOf);
  const size = axes.reduce((product, { places }) => product * places.length, 1);
  return axes.length > 0 && size > 0 && size === values.length ? [{ name, axes, values }] : [];
}

const objectOf = (value: unknown): Json =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
/** A number that is not finite is a text. */
const numberOf = (value: unknown): number =>
  typeof value === "number" ? value : typeof value === "string" && value !== "" ? Number(value) : NaN;
const textOf = (value: unknown): string =>
  value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value);

const withoutPrefix = (text: string, prefix: string): string =>
  text.startsWith(prefix) ? text.slice(prefix.length) : text;

/** An empty list stands for the sizes that a probe takes by itself. */
function settingText(value: unknown): string {
  if (!Array.isArray(value)) return textOf(value);
  return value.length === 0 ? "default" : value.map(textOf).join(",");
}

/** What the values of Ablate's own probes are in (protocol/probes.cc): by probe, then by value without the image size behind it. */
const kUnits: Record<string, Record<string, string>> = {
  attention: { entropy: "nats" },
  "class-attention": { entropy: "nats" },
  "accuracy-by-resolution": { top1: "%", top5: "%" },
  "inference-cost": { memory_bytes: "bytes", images_per_s: "images/s" },
};

/** "%", "nats", …; empty where a value has no unit. */
export function unitOf(probe: string, value: string): string {
  return kUnits[probe]?.[value.replace(/-\d+$/, "")] ?? "";
}

const kSizes = [
  [1e9, "GB"],
  [1e6, "MB"],
  [1e3, "kB"],
] as const;

/** With its unit: "98.5 %", "1.83 nats", "412 MB". */
export function withUnit(value: number, unit: string): string {
  if (unit === "bytes") {
    const [size, name] = kSizes.find(([least]) => Math.abs(value) >= least) ?? [1, "B"];
    return `${short(value / size)} ${name}`;
  }
  return unit ? `${short(value)} ${unit}` : short(value);
}

/** A difference, with the digits of what differs; of percentages without a unit, as it would be read as a share. */
export function differenceText(a: number, b: number, unit: string): string {
  const difference = b - a;
  if (!Number.isFinite(difference)) return "–";
  if (unit === "bytes")
    return (difference < 0 ? "\u2212" : difference > 0 ? "+" : "±") + withUnit(Math.abs(difference), unit);
  const [x, y] = [a, b].map((value) => decimals(plain(Math.abs(value))));
  const text = signed(difference, x === undefined || y === undefined ? undefined : Math.max(x, y));
  return unit && unit !== "%" ? `${text} ${unit}` : text;
}

/** As other numbers of the pages, and without a number that is not there. */
export const short = (value: number): string => (Number.isNaN(value) ? "–" : plain(value));
