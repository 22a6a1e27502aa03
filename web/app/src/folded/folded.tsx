// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Loaded } from "../components/notice";
import { useLate } from "../late";
import type Sections from "./sections";

type Sections = typeof Sections;
interface Props {
  title: string;
  children: (sections: Sections) => ComponentChildren;
}

/** The end of a page: a section that is loaded, and reads what it shows, when it is unfolded. */
export function Folded({ title, children }: Props) {
  const [open, setOpen] = useState(false);
  return (
    <details class="source" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{title}</summary>
      {open && <Unfolded title={title}>{children}</Unfolded>}
    </details>
  );
}

const sections = () => import("./sections");

function Unfolded({ title, children }: Props) {
  return (
    <Loaded of={useLate(sections)} what={title} lines={3}>
      {children}
    </Loaded>
  );
}
