// SPDX-License-Identifier: Apache-2.0
import { Link } from "../router";

/** The tags of a sweep: each leads to the sweeps that have it. */
export function Tags({ tags }: { tags: string[] }) {
  if (tags.length === 0) return null;
  return (
    <span class="tags">
      {tags.map((tag) => (
        <Link
          key={tag}
          class="tag"
          href={`/sweeps?q=${encodeURIComponent(`tag:${tag}`)}`}
          title={`Sweeps with tag ${tag}`}
        >
          {tag}
        </Link>
      ))}
    </span>
  );
}
