// SPDX-License-Identifier: Apache-2.0
import { useRef } from "preact/hooks";
import type { ProbePicture } from "../generated/ablate";

/** Fewer pixels than this are shown as squares, several times as large. */
const kSmall = 320;

/** A picture that a probe drew, of which a click shows all, in a window of its own. */
export function Picture({ run, probe, picture }: { run: number; probe: string; picture: ProbePicture }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const { name, width, height } = picture;
  const source = `data:image/png;base64,${picture.png}`;
  const alt = altOf(probe, picture);
  const coarse = width < kSmall ? "coarse" : "";
  const shown = width * Math.max(1, Math.floor(kSmall / width));
  return (
    <figure class="probe-picture">
      <button
        type="button"
        class="probe-enlarge"
        aria-label={`Enlarge ${name}: ${alt}`}
        title="Enlarge"
        onClick={() => dialog.current?.showModal()}
      >
        <img src={source} alt={alt} class={coarse} style={{ width: `${shown}px` }} />
      </button>
      <figcaption>
        <span class="chart-title">{name}</span>
        <span class="muted num">
          {width} × {height}
        </span>
        <a
          class="button"
          href={source}
          download={`run-${run}-${probe.replace(/[^\w.-]+/g, "-")}-${name}.png`}
          aria-label={`Download ${name} of run ${run}`}
        >
          Download
        </a>
      </figcaption>
      <dialog
        class="panel picture-dialog"
        ref={dialog}
        aria-label={`${name}, enlarged`}
        onClick={(event) => event.target === dialog.current && dialog.current?.close()}
      >
        <img src={source} alt={alt} width={width} height={height} class={coarse} />
        <form method="dialog">
          <button>Close</button>
        </form>
      </dialog>
    </figure>
  );
}

function altOf(probe: string, { name, width, height }: ProbePicture): string {
  if (/^(class-)?attention\b/.test(probe) && name === "maps")
    return "One row for each image: the image, then what each head attends to, brighter where it attends more.";
  return `Picture ${name} of probe ${probe}, ${width} by ${height} pixels.`;
}
