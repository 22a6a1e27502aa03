// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { ActionButton, AskingButton } from "../../acting/button";
import { say } from "../../acting/said";
import { ApiError } from "../../api";
import { ChartPanel } from "../../components/chart_panel";
import { CurveControls } from "../../components/curve_controls";
import { CurveState } from "../../components/curve_state";
import { Fact } from "../../components/fact";
import { FailureGroups } from "../../components/failures";
import { ForecastText } from "../../components/forecast";
import { Menu } from "../../components/menu";
import { Loaded, Notice } from "../../components/notice";
import { firstOf, Pager } from "../../components/pager";
import { countsText, StepsBar, TrialsBar } from "../../components/progress";
import { sorted, SortHead, useOrder } from "../../components/sort";
import { State } from "../../components/state";
import { Swatch } from "../../components/swatch";
import { ColumnHead, TablePanel } from "../../components/table_panel";
import { viewOf } from "../../curves/view";
import { kBaselineLook, lookOf } from "../../palette";
import { useAddress } from "../../router";
import { kCounts, kFailures, kForecasts, kNoRuns, kPlots, kStates } from "./samples";
import { Colours, Fonts } from "./tokens";

export default function Samples() {
  return (
    <>
      <Section id="colours" title="Colours">
        <Colours />
      </Section>
      <Section id="fonts" title="Fonts and sizes">
        <Fonts />
      </Section>
      <Section id="states" title="States">
        {Object.entries(kStates).map(([kind, states]) => (
          <Sample key={kind} name={`State: ${kind}`}>
            {states.map((state) => (
              <State key={state} state={state} />
            ))}
          </Sample>
        ))}
        {kCounts.map(([name, counts]) => (
          <Sample key={name} name={`TrialsBar: ${name}`}>
            <TrialsBar counts={counts} />
            <span class="muted">{countsText(counts)}</span>
          </Sample>
        ))}
        <Sample name="StepsBar: none, some, all">
          <StepsBar step={0} total={0} />
          <StepsBar step={40} total={100} />
          <StepsBar step={100} total={100} />
        </Sample>
        {kForecasts.map(([name, sweep]) => (
          <Sample key={name} name={`ForecastText: ${name}`}>
            <ForecastText sweep={sweep} />
          </Sample>
        ))}
        <Sample name="Swatch: the baseline, then rows">
          <Swatch look={kBaselineLook} />
          {[0, 1, 2, 3, 4, 5, 6].map((i) => (
            <Swatch key={i} look={lookOf(i)} />
          ))}
        </Sample>
        <Sample name="Fact">
          <dl class="facts">
            <Fact name="Owner">ada</Fact>
            <Fact name="Seeds">3</Fact>
          </dl>
        </Sample>
      </Section>
      <Section id="notices" title="Notices">
        <Notices />
      </Section>
      <Section id="buttons" title="Buttons and fields">
        <Buttons />
      </Section>
      <Section id="tables" title="Tables">
        <Tables />
      </Section>
      <Section id="failures" title="Failures">
        <FailureGroups groups={kFailures} withSweep />
      </Section>
      <Section id="charts" title="Charts">
        <Charts />
      </Section>
    </>
  );
}

function Section({ id, title, children }: { id: string; title: string; children: ComponentChildren }) {
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {children}
    </section>
  );
}

function Sample({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div class="sample">
      <span class="muted">{name}</span>
      <div>{children}</div>
    </div>
  );
}

const kError = new ApiError(503, "UNAVAILABLE", "the scheduler is starting: try again in a moment");

function Notices() {
  return (
    <>
      <Sample name="Notice: empty">
        <Notice kind="empty" title="No sweeps yet.">
          <p>A sweep is one file.</p>
          <pre>ablate submit FILE.yaml</pre>
        </Notice>
      </Sample>
      <Sample name="Notice: error">
        <Notice kind="error" title="Unknown sweep 'msf'." />
      </Sample>
      <Sample name="Loaded: loading">
        <Loaded of={{}} what="The sample" lines={3}>
          {() => null}
        </Loaded>
      </Sample>
      <Sample name="Loaded: failed">
        <Loaded of={{ error: kError }} what="The sample">
          {() => null}
        </Loaded>
      </Sample>
      <Sample name="Loaded: failed, older data">
        <Loaded of={{ data: "What was read before.", error: kError }} what="The sample">
          {(text) => <p>{text}</p>}
        </Loaded>
      </Sample>
      <Sample name="Loaded: there">
        <Loaded of={{ data: "What was read." }} what="The sample">
          {(text) => <p>{text}</p>}
        </Loaded>
      </Sample>
      <Sample name="What was done">
        <button type="button" onClick={() => say({ text: "Paused study." })}>
          Done
        </button>
        <button
          type="button"
          onClick={() =>
            say({
              text: "study: priority 7.",
              undo: { label: "Undo", run: async () => ({ text: "study: priority 0 again." }) },
            })
          }
        >
          Done, with undo
        </button>
        <button type="button" onClick={() => say({ text: kError.message }, true)}>
          Failed
        </button>
      </Sample>
    </>
  );
}

const kSlowMs = 1500;
const slowly = (): Promise<void> => new Promise((over) => setTimeout(over, kSlowMs));

function Buttons() {
  const [pressed, setPressed] = useState(true);
  return (
    <>
      <Sample name="Buttons">
        <button type="button">Button</button>
        <button type="button" class="quiet">
          Quiet
        </button>
        <button type="button" class="does">
          Does
        </button>
        <button type="button" class="ends">
          Ends
        </button>
        <button type="button" class="button" aria-pressed={pressed} onClick={() => setPressed(!pressed)}>
          Pressed
        </button>
        <button type="button" aria-disabled="true">
          Disabled
        </button>
      </Sample>
      <Sample name="ActionButton: busy, then done or failed">
        <ActionButton
          label="Does"
          run={async () => {
            await slowly();
            return { text: "Done." };
          }}
        />
        <ActionButton
          quiet
          label="Fails"
          run={async () => {
            await slowly();
            throw kError;
          }}
        />
      </Sample>
      <Sample name="AskingButton: done or failed">
        <AskingButton label="Set…" title="Priority of study" verb="Set" run={async () => undefined}>
          <label class="field">
            Priority
            <input type="number" defaultValue={0} />
            <small>higher goes first</small>
          </label>
        </AskingButton>
        <AskingButton
          label="Cancel…"
          title="Cancel study?"
          verb="Cancel the sweep"
          ends
          run={async () => {
            await slowly();
            throw kError;
          }}
        >
          <p>3 waiting trials will not run.</p>
          <label class="check">
            <input type="checkbox" />
            Stop its 2 runs too
          </label>
        </AskingButton>
      </Sample>
      <Sample name="Fields">
        <div class="controls">
          <label>
            Find
            <input type="search" />
          </label>
          <label>
            Choose
            <select>
              <option>one</option>
              <option>another</option>
            </select>
          </label>
          <label>
            Number
            <input type="number" defaultValue={7} />
          </label>
          <label class="check">
            <input type="checkbox" defaultChecked />
            Check
          </label>
        </div>
      </Sample>
      <Sample name="Menu">
        <Menu title="Columns">
          {() => (
            <label class="check">
              <input type="checkbox" defaultChecked />
              acc
            </label>
          )}
        </Menu>
      </Sample>
      <Sample name="Tag, chip">
        <span class="tag">tag</span>
        <span class="chip">chip</span>
      </Sample>
    </>
  );
}

const kRows = [
  { name: "orig", value: 74.1 },
  { name: "msf", value: 73.2 },
  { name: "a-row-with-a-long-name-of-many-factors,groups=8,heads=12,window=7,depth=24", value: undefined },
];

function Tables() {
  const order = useOrder("sort");
  const first = firstOf(useAddress().searchParams);
  return (
    <>
      <TablePanel
        titled
        caption="A table that sorts"
        head={
          <>
            <SortHead order={order} column="name">
              Row
            </SortHead>
            <SortHead order={order} column="value" numeric highFirst>
              acc
            </SortHead>
            <ColumnHead num>n</ColumnHead>
          </>
        }
      >
        {sorted(kRows, order, { name: (row) => row.name, value: (row) => row.value }).map((row, i) => (
          <tr key={row.name} class={i === 1 ? "selected" : ""}>
            <th scope="row">
              <span class="name" title={row.name}>
                {row.name}
              </span>
            </th>
            <td class="num">{row.value ?? <span class="muted">–</span>}</td>
            <td class="num">3</td>
          </tr>
        ))}
      </TablePanel>
      <Pager first={first} size={50} total={120} what="Rows" />
    </>
  );
}

function Charts() {
  const view = viewOf(useAddress().searchParams);
  return (
    <>
      <CurveControls view={view} runs={kNoRuns} all={{ from: 0, to: 590 }} means />
      <CurveState
        seen={{ resource: {}, refining: true, undrawn: new Map([["the run has no batch size", 2]]) }}
      />
      <div class="run-charts">
        {kPlots.map(([title, plot]) => (
          <div key={title} class="panel">
            <ChartPanel title={title} plot={plot} sync="design" ownKey />
          </div>
        ))}
      </div>
    </>
  );
}
