// SPDX-License-Identifier: Apache-2.0

/** Example sweep files, each loaded when it is chosen. The tests submit the same files. */
const kFiles = import.meta.glob<string>(
  ["../../../../../sweeps/demo/*.yaml", "../../../../../sweeps/examples/cifar10-*.yaml"],
  { query: "?raw", import: "default" },
);

export const kExamples = Object.entries(kFiles).map(([file, load]) => ({
  name: file.split("/").pop()!.replace(".yaml", ""),
  load,
}));
