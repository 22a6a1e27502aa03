// SPDX-License-Identifier: Apache-2.0
import { kAnything, type Change } from "./stream";

/** So many changes are kept, more than come at once; of those before them it is only known that there were some. */
const kMost = 512;

/** Where a reader stands: the server's process, and a number that grows with each change ("8f2c0d1a-17"). */
function parsed(place: string): { process: string; number: number } {
  const [process = "", number = ""] = place.split("-");
  return { process, number: Number(number) };
}

interface Numbered {
  change: Change;
  /** It is not behind this place. */
  number: number;
}

/** What one stream has told, for those who begin to listen later than they began to read. */
export class Heard {
  private process = "";
  /** Every change behind this number is here. */
  private from = 0;
  /** Where the stream stands. */
  private last = 0;
  private readonly changes = new Map<string, Numbered>();
  /** Of several changes that are told together the last one has a place: that of all of them. */
  private together: Numbered[] = [];

  /** The stream tells what changes behind `place`. */
  begin(place: string): void {
    const { process, number } = parsed(place);
    this.process = process;
    this.from = this.last = number;
    this.changes.clear();
    this.together = [];
  }
  /** `place`: where the stream stood when it told this; the same as before, where more is to follow. */
  add(change: Change, place: string): void {
    const { process, number } = parsed(place);
    if (process !== this.process) this.begin(place);
    const key = JSON.stringify(change);
    const numbered = { change, number: Infinity };
    this.changes.delete(key); // the newest last
    this.changes.set(key, numbered);
    this.together.push(numbered);
    if (number > this.last) {
      for (const one of this.together) one.number = number;
      this.together = [];
      this.last = number;
    }
    if (this.changes.size <= kMost) return;
    const [oldest, { number: forgotten }] = this.changes.entries().next().value!;
    this.changes.delete(oldest);
    this.from = forgotten;
  }
  /** What somebody who stands at `place` has not heard: that anything may have changed, where it is not known. */
  since(place: string): Change[] {
    const { process, number } = parsed(place);
    if (process !== this.process || number < this.from) return [kAnything];
    return [...this.changes.values()].filter((one) => one.number > number).map(({ change }) => change);
  }
}
