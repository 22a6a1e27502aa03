// SPDX-License-Identifier: Apache-2.0

import type { Real, RunSummary } from "./generated/ablate";

const kMinus = "\u2212";

/**
 * As the server rounds the numbers of a table (storage/cell_text.cc): half away from zero, judged on 15 figures, so that 95.175 becomes 95.18
 * whatever its last bit is. With an ASCII minus, and never minus zero.
 */
export function rounded(value: number, digits: number): string {
  const [figures, exponent] = Math.abs(value).toExponential(14).split("e");
  const shifted = Math.round(Number(`${figures}e${Number(exponent) + digits}`));
  const text = (shifted < 2 ** 53 ? shifted / 10 ** digits : Math.abs(value)).toFixed(digits);
  return value < 0 && Number(text) !== 0 ? `-${text}` : text;
}

export function plain(value: Real | undefined): string {
  if (value === undefined) return "–";
  const number = Number(value);
  if (!Number.isFinite(number)) return Number.isNaN(number) ? "NaN" : number > 0 ? "∞" : `${kMinus}∞`;
  const size = Math.abs(number);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return number.toExponential(2).replace("-", kMinus);
  const digits = Number.isInteger(number) ? 0 : size >= 1000 ? 1 : size >= 10 ? 2 : 4;
  return grouped(rounded(number, digits));
}

/** "74.10 ± 1.74": the deviation has the mean's digits, and both as many as give it two figures. */
export function withSpread(mean: number, deviation: number): string {
  const size = Math.abs(mean);
  if (size >= 1e7 || (size < 1e-3 && Math.max(size, deviation) !== 0 && deviation < 1e-3))
    return `${plain(mean)} ± ${plain(deviation)}`;
  const usual = size >= 1000 ? 1 : size >= 10 ? 2 : 4;
  const digits = deviation > 0 ? Math.min(6, Math.max(usual, 1 - Math.floor(Math.log10(deviation)))) : usual;
  return `${grouped(rounded(mean, digits))} ± ${grouped(rounded(deviation, digits))}`;
}

/** A tick of an axis: short, without zeros that say nothing. */
export function tick(value: number): string {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7))
    return String(Number(value.toPrecision(8)).toExponential())
      .replaceAll("-", kMinus)
      .replace("e+", "e");
  return grouped(String(Number(value.toPrecision(8))));
}

/** Things per second. */
export function rate(perSecond: Real): string {
  const value = Number(perSecond);
  return value > 0 ? grouped(value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2)) : "–";
}

/** How many digits a number's text has after the point; undefined for "1.20e-7", "NaN" and the like. */
export function decimals(text: string): number | undefined {
  const match = /^-?\d+(?:\.(\d+))?$/.exec(text);
  return match ? (match[1]?.length ?? 0) : undefined;
}

/** With a sign, for differences; without digits as many as say something. */
export function signed(value: number, digits?: number): string {
  const text = digits === undefined ? plain(Math.abs(value)) : rounded(Math.abs(value), digits);
  if (Number(text) === 0) return `±${text}`;
  return (value > 0 ? "+" : kMinus) + text;
}

export function whole(value: number): string {
  return grouped(String(Math.round(value)));
}

/** A number's text by the server, with a real minus. */
export function withMinus(text: string): string {
  return text.replace(/-(?=[\d.])/g, kMinus);
}

/** `rounded`, with a real minus. */
export function fixed(value: number, digits: number): string {
  return withMinus(rounded(value, digits));
}

/** "= 0.0312", "< 0.0001". */
export function pText(p: number): string {
  return p < 1e-4 ? "< 0.0001" : `= ${p.toFixed(4)}`;
}

function grouped(text: string): string {
  const minus = Number(text) === 0 ? "" : kMinus; // never minus zero
  const [integer = "", fraction] = text.replace("-", minus).split(".");
  const spaced = integer.replace(/\B(?=(\d{3})+$)/g, "\u202f");
  return fraction === undefined ? spaced : `${spaced}.${fraction}`;
}

export function duration(seconds: Real | undefined): string {
  const exact = Number(seconds);
  if (!Number.isFinite(exact)) return "–";
  const s = Math.max(0, Math.round(exact));
  const two = (n: number): string => String(n).padStart(2, "0");
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${two(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${two(Math.floor((s % 3600) / 60))} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export function moment(text: string): string {
  const [time, now] = [new Date(text), new Date()];
  if (time.toDateString() === now.toDateString())
    return time.toLocaleString(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  return time.toLocaleString(undefined, {
    day: "numeric",
    month: "short",
    ...(time.getFullYear() === now.getFullYear() ? {} : { year: "numeric" }),
    hour: "2-digit",
    minute: "2-digit",
  });
}

export function between(from: string | undefined, to: string | undefined): string {
  if (!from) return "–";
  return duration(((to ? Date.parse(to) : Date.now()) - Date.parse(from)) / 1000);
}

/** How long a run's program ran, as its worker measured; of runs by older workers, between the two moments. */
export function took(run: Pick<RunSummary, "took_seconds" | "started" | "leased" | "ended">): string {
  if (run.took_seconds !== undefined) return duration(run.took_seconds);
  return between(run.started ?? run.leased, run.ended);
}

export function bytes(count: number): string {
  if (count < 1024) return `${count} B`;
  if (count < 1024 * 1024) return `${(count / 1024).toFixed(1)} KiB`;
  if (count < 1024 ** 3) return `${(count / 1024 ** 2).toFixed(1)} MiB`;
  return `${(count / 1024 ** 3).toFixed(1)} GiB`;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${whole(count)} ${count === 1 ? one : many}`;
}

/** Whether the label says what the id says: "lr=0.1, groups=2" and "lr=0.1,groups=2" do. */
export function sameName(id: string, label: string): boolean {
  return id.replaceAll(" ", "") === label.replaceAll(" ", "");
}

/** "a MSF, Simplest"; the label alone where it says what the id says. */
export function rowName(id: string, label: string): string {
  return sameName(id, label) ? label : `${id} ${label}`;
}
