// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import { ChartPanel } from "../../../components/chart_panel";
import { CurveControls, zoomTo } from "../../../components/curve_controls";
import { CurveState } from "../../../components/curve_state";
import { Loaded, Notice } from "../../../components/notice";
import { groupRun, useSeen } from "../../../curves/seen";
import { viewOf, viewText } from "../../../curves/view";
import { lookOf } from "../../../palette";
import { useAddress } from "../../../router";
import { extentOf, plotOf, quantitiesOf } from "../../../series";

/** One chart for each quantity, training and validation in it, all with one cursor. */
export function RunCurves({ run }: { run: number }) {
  const { searchParams } = useAddress();
  const view = useMemo(() => viewOf(searchParams), [viewText(searchParams)]);
  const runs = useMemo(() => [run], [run]);
  const seen = useSeen(runs, [], view, (change) => change.run === run || change.run === 0);
  const set = seen.resource.data;
  const charts = useMemo(() => {
    // a probe's values have one point each: they are in a section of their own
    const metrics = [...(set?.curves.values() ?? [])]
      .map((curve) => curve.name)
      .filter((name) => !name.startsWith("probe:"));
    return [...quantitiesOf(metrics)].map(([quantity, names]) => {
      const groups = names.map((name, i) => {
        const own = set && groupRun(set, run, name, name, view);
        return { id: name, label: name, look: lookOf(i), runs: own ? [own] : [] };
      });
      return {
        quantity,
        plot: plotOf(
          groups.filter((group) => group.runs.length > 0),
          view,
        ),
      };
    });
  }, [set, view]);
  return (
    <Loaded of={seen.resource} what="The curves" lines={6}>
      {(data) =>
        charts.length === 0 ? (
          <Notice kind="empty" title="No points yet." />
        ) : (
          <>
            <CurveControls
              view={view}
              runs={[...data.runs.values()]}
              all={extentOf(charts.flatMap(({ plot }) => plot.lines))}
              means={false}
            />
            <CurveState seen={seen} />
            <div class="panel run-charts">
              {charts.map(({ quantity, plot }) => (
                <ChartPanel
                  key={quantity}
                  title={quantity}
                  plot={plot}
                  sync={`run ${run}`}
                  scales={view}
                  onZoom={zoomTo}
                  ownKey
                />
              ))}
            </div>
          </>
        )
      }
    </Loaded>
  );
}
