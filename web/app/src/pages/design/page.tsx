// SPDX-License-Identifier: Apache-2.0
import { Loaded } from "../../components/notice";
import { useLate } from "../../late";
import type { Page } from "../../page";

export const page: Page = {
  title: "Design",
  View: DesignPage,
};

// read when somebody looks: no other page has need of it
const samples = () => import("./samples_shown");

/** What the pages are made of, in all states: a change of a style is seen here at once. */
function DesignPage() {
  return (
    <>
      <h1 tabIndex={-1}>Design</h1>
      <p class="lead">
        Colours, fonts and shared components in all of their states, in the present theme. Each is the real
        one with made-up data.
      </p>
      <Loaded of={useLate(samples)} what="The samples" lines={12}>
        {(Samples) => <Samples />}
      </Loaded>
    </>
  );
}
