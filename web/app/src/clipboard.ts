// SPDX-License-Identifier: Apache-2.0

/** Some browsers let a page write only at once after a click: they are given what is still to come. Throws where it may not. */
export async function toClipboard(text: Promise<string>): Promise<void> {
  if (!navigator.clipboard)
    throw new Error("The browser allows copying only over HTTPS or from this machine: download instead.");
  if (typeof ClipboardItem === "undefined") return navigator.clipboard.writeText(await text);
  const blob = text.then((all) => new Blob([all], { type: "text/plain" }));
  await navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
}
