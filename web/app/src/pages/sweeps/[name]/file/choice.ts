// SPDX-License-Identifier: Apache-2.0

/** Which revision of a sweep's file is shown, and with which one it is compared. */
export interface FileChoice {
  shown: number;
  before?: number;
}

/**
 * What the address says: `?file=3` is revision 3, `?file=1..3` what differs from revision 1 to 3, as `ablate show --diff` has it. Undefined:
 * nothing that there is, so that the file is folded.
 */
export function fileChoiceOf(text: string | null, newest: number): FileChoice | undefined {
  const [, first, last] = /^(\d{1,9})(?:\.\.(\d{1,9}))?$/.exec(text ?? "") ?? [];
  const there = (revision: number): boolean => revision >= 1 && revision <= newest;
  if (first === undefined || !there(Number(first))) return undefined;
  if (last === undefined) return { shown: Number(first) };
  if (!there(Number(last)) || first === last) return undefined;
  return { shown: Number(last), before: Number(first) };
}

export function fileChoiceText({ shown, before }: FileChoice): string {
  return before === undefined ? `${shown}` : `${before}..${shown}`;
}

/** What a file of a sweep is called where it is kept: of an earlier revision with that in its name. */
export function fileName(sweep: string, path: string, earlier?: number): string {
  const name = path.split("/").at(-1)!;
  const base = /\.ya?ml$/i.test(name) ? name : `${sweep}.yaml`;
  return earlier === undefined ? base : base.replace(/\.(ya?ml)$/i, `.revision-${earlier}.$1`);
}
