// SPDX-License-Identifier: Apache-2.0

import { ApiError } from "../../api";

/** Example sweep files, each read when it is chosen. The tests submit the same files. */
const kFiles = import.meta.glob<string>(
  ["../../../../../sweeps/demo/*.yaml", "../../../../../sweeps/examples/cifar10-*.yaml"],
  { query: "?url", import: "default", eager: true },
);

export const kExamples = Object.entries(kFiles).map(([file, address]) => ({
  name: file.split("/").pop()!.replace(".yaml", ""),
  load: async (): Promise<string> => {
    const response = await fetch(address);
    if (!response.ok) throw new ApiError(response.status, "UNAVAILABLE", `HTTP status ${response.status}`);
    return response.text();
  },
}));
