// SPDX-License-Identifier: Apache-2.0

/** How a line looks, in the chart and beside its name: a hue that colour-blind readers tell apart, and a dash pattern. */
export interface Look {
  /** A CSS custom property: its value differs between light and dark. */
  color: string;
  dash: number[];
  strong: boolean;
}

const kColors = 7;
const kDashes = [[], [9, 4], [2, 3], [12, 4, 2, 4], [5, 3]];

/** The look of the i-th row or metric. */
export function lookOf(index: number): Look {
  return {
    color: `--line-${(index % kColors) + 1}`,
    dash: kDashes[index % kDashes.length] ?? [],
    strong: false,
  };
}

/** The baseline: ink, solid and heavier. */
export const kBaselineLook: Look = { color: "--ink", dash: [], strong: true };
