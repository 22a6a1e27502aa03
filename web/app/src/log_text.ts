// SPDX-License-Identifier: Apache-2.0

// ESC [ … letter (colours, cursor), ESC ] … BEL or ESC \\ (titles, links), ESC and one more character
const kEscapes = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;
// what else a browser would draw as a box; the tab and the newline stay
// eslint-disable-next-line no-control-regex
const kControls = /[\u0000-\u0008\u000b-\u001f\u007f]/g;

/** A log as a terminal would leave it: without colours and titles, a line that was written over itself as it was at last. */
export function readableLog(text: string): string {
  return text
    .replace(kEscapes, "")
    .replace(/\r+\n/g, "\n")
    .replace(/[^\n]*\r(?=[^\n])/g, "")
    .replace(kControls, "");
}
