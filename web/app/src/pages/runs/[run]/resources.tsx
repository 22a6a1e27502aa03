// SPDX-License-Identifier: Apache-2.0
import { useMemo, useState } from "preact/hooks";
import { ChartPanel } from "../../../components/chart_panel";
import { Fact } from "../../../components/fact";
import { Loaded, Notice } from "../../../components/notice";
import type { Zoom } from "../../../curves/view";
import { duration, plain, plural, whole } from "../../../format";
import type { ResourcesResponse, ResourceUse } from "../../../generated/ablate";
import { useResource } from "../../../resource";
import { extentOf } from "../../../series";
import { notMeasured, resourcePlots, unitFor } from "./resource_plots";

/** Workers send a few samples of a run together: more often there is nothing new. */
const kSlowMs = 5000;

/** What a run took of its machine over time. `state`: the run's, which tells of its end. */
export function Resources({ run, state }: { run: number; state: string }) {
  const [zoom, setZoom] = useState<Zoom | undefined>();
  const range = zoom
    ? `?from=${Math.max(0, Math.floor(zoom.from))}&to=${Math.max(0, Math.ceil(zoom.to))}`
    : "";
  const resource = useResource<ResourcesResponse>(
    `/runs/${run}/resources${range}`,
    (change) => change.run === run || change.run === 0,
    `resources of ${run}`,
    { ms: kSlowMs, watched: state },
  );
  return (
    <section aria-labelledby="resources">
      <h2 id="resources">Resources</h2>
      <Loaded of={resource} what="The resources" lines={3}>
        {(data) => <Charts run={run} of={data} zoom={zoom} onZoom={setZoom} />}
      </Loaded>
    </section>
  );
}

interface ChartsProps {
  run: number;
  of: ResourcesResponse;
  zoom: Zoom | undefined;
  onZoom: (zoom: Zoom | undefined) => void;
}

function Charts({ run, of, zoom, onZoom }: ChartsProps) {
  const plots = useMemo(() => resourcePlots(of), [of]);
  // all charts show the same stretch of time, whatever each has points of
  const scales = useMemo(() => {
    const to = extentOf(plots.flatMap(({ plot }) => plot.lines))?.to ?? 1;
    return { logX: false, logY: false, zoom: zoom ?? { from: 0, to } };
  }, [plots, zoom]);
  if (!of.use)
    return (
      <Notice kind="empty" title="No samples">
        {of.why_none}.
      </Notice>
    );
  const missing = notMeasured(of);
  return (
    <>
      <Use of={of.use} />
      <div class="panel run-charts resource-charts">
        {plots.length === 0 && <p class="muted">No samples in this stretch of time.</p>}
        {plots.map(({ title, plot }) => (
          <ChartPanel
            key={title.replace(/ \(.*/, "")}
            title={title}
            plot={plot}
            sync={`resources of ${run}`}
            scales={scales}
            onZoom={onZoom}
            ownKey
          />
        ))}
      </div>
      <p class="muted resource-notes">
        {of.bucket_s === 0
          ? `${plural(of.samples, "sample")}, all of them drawn. `
          : `${plural(of.samples, "sample")} in means of ${duration(of.bucket_s)}, from lowest to highest as a band; drag over a chart for a closer look. `}
        {zoom && (
          <button type="button" class="quiet" onClick={() => onZoom(undefined)}>
            Show all of the run
          </button>
        )}
        {of.gaps.length > 0 &&
          ` Nothing was sampled in ${plural(of.gaps.length, "stretch", "stretches")} of time, where lines break.`}
        {missing.length > 0 && ` Not measured: ${missing.join(", ")}; its worker may not look at that.`}
        {of.left_out > 0 &&
          ` ${plural(of.left_out, "later sample")} ${of.left_out === 1 ? "is" : "are"} not stored.`}
      </p>
    </>
  );
}

/** Of all samples together. */
function Use({ of }: { of: ResourceUse }) {
  const inBytes = (text: string): string => {
    const unit = unitFor("bytes", Number(text));
    return `${plain(Number(text) / unit.size)} ${unit.name}`;
  };
  const percent = (share: number | string): string => `${plain(Number(share) * 100)} %`;
  return (
    <dl class="facts panel resource-use">
      {of.peak_memory_bytes !== undefined && (
        <Fact name="Peak memory">
          <span title={`The highest of ${whole(of.samples)} samples`}>{inBytes(of.peak_memory_bytes)}</span>
        </Fact>
      )}
      {of.cpu_cores !== undefined && <Fact name="Mean CPU">{plain(of.cpu_cores)} cores</Fact>}
      {of.gpu !== undefined && <Fact name="Mean GPU">{percent(of.gpu)}</Fact>}
      {of.peak_gpu_memory_bytes !== undefined && (
        <Fact name="Peak GPU memory">{inBytes(of.peak_gpu_memory_bytes)}</Fact>
      )}
      {of.read_bytes !== undefined && <Fact name="Read from disk">{inBytes(of.read_bytes)}</Fact>}
      {of.written_bytes !== undefined && <Fact name="Written to disk">{inBytes(of.written_bytes)}</Fact>}
      {of.data_wait !== undefined && <Fact name="Waited for data">{percent(of.data_wait)} of training</Fact>}
    </dl>
  );
}
