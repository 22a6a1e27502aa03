# SPDX-License-Identifier: Apache-2.0
"""The package python/ablate as pip installs it, in a trial: params, seed and data reach the script, what it logs fills the table, and it is
stopped and goes on from its checkpoint. The example of docs/python.md runs as it is printed."""
import json
import re
import sqlite3
import subprocess

from fleet import SOURCE, Fleet, expect, say
from pythons import install, python_with

# a step each time that the gate has one more line; it says which checkpoint it began with
SCRIPT = """
import math, pathlib, sys, time
import ablate

params = ablate.params(rate=0.5, gate="", epochs=6, optimiser={"name": "sgd"})
begun = ablate.resume()
done = int(begun.read_text()) if begun else 0
ablate.start(total_steps=params.epochs, resumed_step=done if begun else None)
print("began after", done, "with", params.optimiser.name, ablate.device(), ablate.threads(), "data", ablate.data())
gate = pathlib.Path(params.gate)
for step in range(done + 1, params.epochs + 1):
    while len(gate.read_text()) < step and not ablate.should_stop():
        time.sleep(0.01)
    if ablate.should_stop():
        print("stops after", step - 1)
        sys.exit(0)
    print("half a line", end="")
    ablate.log(step, {"val/top1": 100 * params.rate + ablate.seed() / 3 + step}, loss=math.nan if step == 2 else 1 / step)
    with ablate.saving(suffix=".txt") as path:
        path.write_text(str(step))
ablate.probe("odd", {"steps": params.epochs - done})
"""


def stopped_and_resumed(fleet, python):
    say("params, seed and data reach the script; it is stopped, and goes on")
    script, gate, data = fleet.home / "train.py", fleet.home / "gate", fleet.home / "pictures"
    script.write_text(SCRIPT)
    gate.write_text("...")
    data.mkdir()
    (data / "one").write_text("1")
    columns = [{"name": "acc", "metric": "val/top1", "take": "last"}, {"name": "mean", "metric": "val/top1", "take": "mean"},
               {"name": "loss", "metric": "loss", "better": "lower", "take": "last"}, {"name": "odd", "probe": "odd/steps"}]
    (fleet.home / "packaged.yaml").write_text(json.dumps({
        "ablate": 1, "name": "packaged",
        "command": {"argv": [python, str(script)], "params": {"rate": 0.5, "gate": str(gate), "optimiser": {"name": "adam"}}, "data": "pictures"},
        "factors": {"params.rate": [0.25, 0.5]}, "seeds": [1, 2], "table": {"baseline": "rate=0.5", "columns": columns}}))
    fleet.start_worker("willing", "--slots", 4, "--allow-commands", "--data", f"pictures={data}")
    fleet.ablate("submit", fleet.home / "packaged.yaml")

    def steps():
        with sqlite3.connect(f"file:{fleet.store}?mode=ro", uri=True) as store:
            return [step for step, in store.execute("SELECT MAX(c.step) FROM checkpoint c JOIN run r ON r.id = c.run_id GROUP BY r.trial_id")]

    fleet.until(lambda: steps() == [3] * 4, "every trial has a checkpoint of step 3")
    fleet.ablate("pause", "packaged", "--stop-running")
    fleet.until(lambda: {t["state"] for t in fleet.trials("packaged")} == {"TRIAL_STATE_QUEUED"}, "it is paused")
    gate.write_text("......")
    fleet.ablate("resume", "packaged")
    fleet.wait_for("packaged")
    table = fleet.json("table", "packaged")
    print(fleet.ablate("table", "packaged").stdout)
    means = [[cell.get("mean") for cell in row["cells"]] for row in table["rows"]]
    near = all(abs(a - b) < 1e-9 for got, want in zip(means, ([25 + 0.5 + 6, 25 + 0.5 + 3.5], [50 + 0.5 + 6, 50 + 0.5 + 3.5]))
               for a, b in zip(got, want))
    expect(near and [row["cells"][2]["mean"] for row in table["rows"]] == [1 / 6, 1 / 6], f"the table has what was logged, of all six steps: {means}")
    expect([row["cells"][3]["mean"] for row in table["rows"]] == [3, 3], "and what a probe found, of the last attempt")
    expect(all(t["attempt"] == 2 for t in fleet.trials("packaged")), "each in a second attempt")
    logs = [fleet.ablate("logs", t["run"]).stdout for t in fleet.trials("packaged")]
    expect(all("began after 3 with adam cpu" in log and f"data {data}" in log for log in logs), "it began after step 3, told of device and data")
    with sqlite3.connect(f"file:{fleet.store}?mode=ro", uri=True) as store:
        refused = store.execute("SELECT SUM(refused_lines) FROM run").fetchone()[0]
        kinds = store.execute("SELECT DISTINCT step, kind FROM metric_point WHERE metric = 'loss' AND newest AND value IS NULL").fetchall()
        steps_of_run, environment = store.execute("SELECT total_steps, environment_json FROM run ORDER BY id DESC LIMIT 1").fetchone()
    expect(refused == 0 and kinds == [(2, "NaN")], f"nothing of it was refused, and NaN is NaN: {refused}, {kinds}")
    expect(steps_of_run == 6 and "python" in json.loads(environment), "it said how many steps there are, and its environment")
    kept = sorted(each.name for each in fleet.home.glob("runs/*/2/checkpoint-*"))
    expect(kept == ["checkpoint-5.txt"] * 4 + ["checkpoint-6.txt"] * 4, f"of each run the newest two checkpoints are kept: {kept}")


def wrong_param(fleet):
    say("a param that the script does not have fails its trials, with that reason")
    text = json.loads((fleet.home / "packaged.yaml").read_text())
    text["name"], text["seeds"] = "misspelt", [0]
    text["command"]["params"] = {"rat": 0.5}
    text["factors"] = {"params.rat": [0.5]}
    text["table"].pop("baseline")
    text["command"].pop("data")
    (fleet.home / "misspelt.yaml").write_text(json.dumps(text))
    fleet.ablate("submit", fleet.home / "misspelt.yaml")
    fleet.wait_for("misspelt")
    reason = fleet.trials("misspelt")[0]["reason"]
    expect(reason == "the sweep file sets param 'rat', which this script does not have; did you mean 'rate'?", reason)


def example_of_the_page(fleet, python):
    say("the example of docs/python.md, as it is printed: alone, and as a sweep")
    page = (SOURCE / "docs/python.md").read_text()
    study = fleet.home / "study"
    study.mkdir()
    for name, language in (("train.py", "python"), ("study.yaml", "yaml")):
        (study / name).write_text(re.search(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE).group(1))
    alone = subprocess.run([python, "train.py", "--lr=0.2", "--epochs=2", "--seed=1"], cwd=study, env=fleet.environment, capture_output=True, text=True)
    expect(alone.returncode == 0 and alone.stdout.startswith("step 1  "), f"it runs alone: {alone.stdout.splitlines()[:1]}{alone.stderr}")
    sweep = study / "study.yaml"
    sweep.write_text(sweep.read_text().replace("[python3, ", f"[{python}, "))
    name = fleet.json("submit", sweep)["sweep"]["name"]
    fleet.wait_for(name)
    print(fleet.ablate("table", name).stdout)
    table = fleet.json("table", name)
    metric = [i for i, c in enumerate(table["columns"]) if c["kind"] == "KIND_METRIC"]
    expect(all(row["cells"][i]["n"] == row["cells"][i]["of"] for row in table["rows"] for i in metric), "every cell is filled")


def main():
    python = python_with("pip")
    with Fleet("python") as fleet:
        say("pip install ./python")
        fleet.environment["PYTHONPATH"] = str(install(python, fleet.home))
        fleet.start_scheduler()
        stopped_and_resumed(fleet, python)
        wrong_param(fleet)
        example_of_the_page(fleet, python)


main()
