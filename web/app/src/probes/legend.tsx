// SPDX-License-Identifier: Apache-2.0
import type { FoundArray } from "./found";

/** Whether an array says which colours classes have in the pictures beside it. */
export function isLegend({ axes }: FoundArray): boolean {
  return axes.length === 2 && axes[1]!.places.join() === "red,green,blue";
}

/** Swatches with the names of classes. */
export function Legend({ array, of = "" }: { array: FoundArray; of?: string }) {
  return (
    <ul class="probe-legend" aria-label={`Colours of the classes${of}`}>
      {array.axes[0]!.places.map((name, i) => (
        <li key={name}>
          <svg viewBox="0 0 1 1" aria-hidden="true">
            <rect width="1" height="1" fill={`rgb(${array.values.slice(3 * i, 3 * i + 3).join()})`} />
          </svg>
          {name}
        </li>
      ))}
    </ul>
  );
}
