# SPDX-License-Identifier: Apache-2.0
"""Sweeps of programs that are not ours: the Python example of the docs, and the first example of docs/sweep-file.md, as they are printed. Their
metrics are in the table."""
import json
import re
import sqlite3
import sys

from fleet import SOURCE, Fleet, expect, say


def block(page, language):
    """The first block of this language below the page's heading 'command'."""
    return re.search(rf"^## command$.*?^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE).group(1)


def every_cell_is_filled(fleet, name):
    print(fleet.ablate("table", name).stdout)
    table = fleet.json("table", name)
    expect(fleet.json("show", name)["summary"]["state"] == "SWEEP_STATE_COMPLETED", "every trial completed")
    metric = [i for i, c in enumerate(table["columns"]) if c["kind"] == "KIND_METRIC"]
    expect(metric and all(row["cells"][i]["n"] == row["cells"][i]["of"] for row in table["rows"] for i in metric),
           "its metrics are in every cell of the table")
    return [[row["cells"][i]["mean"] for i in metric] for row in table["rows"]]


# resumes, and says no `start`: a step every time that the gate has one more line
RESUMES = """
import json, os, pathlib, sys, time
tell = lambda **event: print(json.dumps(event), flush=True)
resume, gate = os.environ["ABLATE_RESUME"], pathlib.Path(sys.argv[1])
for step in range(int(pathlib.Path(resume).read_text()) + 1 if resume else 1, 7):
    while len(gate.read_text()) < step:
        time.sleep(0.01)
    tell(event="metric", step=step, values={"acc": 100 - step})
    file = pathlib.Path(os.environ["ABLATE_RUN_DIR"], f"{step}.txt")
    file.write_text(str(step))
    tell(event="checkpoint", step=step, path=str(file))
while len(gate.read_text()) < 7:
    time.sleep(0.01)
"""


def history_is_kept(fleet):
    say("a program that resumes and says no start keeps the points before its checkpoint")
    program, gate = fleet.home / "resumes.py", fleet.home / "gate"
    program.write_text(RESUMES)
    gate.write_text("...")
    columns = [{"name": take, "metric": "acc", "take": take, "better": "higher"} for take in ("best", "mean")]
    (fleet.home / "resumes.yaml").write_text(json.dumps({
        "ablate": 1, "name": "resumes", "command": {"argv": [sys.executable, str(program), str(gate)]}, "rows": [{"id": "a"}],
        "table": {"columns": columns}}))
    fleet.ablate("submit", fleet.home / "resumes.yaml")

    def at(step):
        with sqlite3.connect(f"file:{fleet.store}?mode=ro", uri=True) as store:
            return store.execute("SELECT MAX(step) FROM checkpoint").fetchone()[0] == step

    fleet.until(lambda: at(3), "it has a checkpoint of step 3")
    fleet.kill("willing")
    gate.write_text("......")
    fleet.start_worker("willing", "--slots", 2, "--allow-commands")
    fleet.until(lambda: at(6), "it went on to step 6")
    say("and when nothing is left to do after it")
    fleet.ablate("pause", "resumes", "--stop-running")
    fleet.until(lambda: fleet.trials("resumes")[0]["state"] == "TRIAL_STATE_QUEUED", "it is paused")
    gate.write_text(".......")
    fleet.ablate("resume", "resumes")
    fleet.wait_for("resumes")
    means = every_cell_is_filled(fleet, "resumes")
    expect(means == [[99, 96.5]], f"best and mean are of all six points: {means}")


def main():
    sweep = SOURCE / "sweeps/examples/command.yaml"
    with Fleet("command") as fleet:
        fleet.start_scheduler()
        fleet.start_worker("careful", "--slots", 1)
        name = fleet.json("submit", sweep)["sweep"]["name"]
        fleet.until(lambda: all("--allow-commands" in t["reason"] for t in fleet.trials(name)), "the waiting trials say what they wait for")
        fleet.stop("careful")
        fleet.start_worker("willing", "--slots", 2, "--allow-commands")
        fleet.wait_for(name)
        every_cell_is_filled(fleet, name)
        say("a second submission trains nothing again")
        expect(not fleet.json("submit", sweep)["created"], "the same sweep is the same sweep")

        say("the first example of the docs, as it is printed")
        page = (SOURCE / "docs/sweep-file.md").read_text()
        study = fleet.home / "my study"
        study.mkdir()
        (study / "own-trainer.yaml").write_text(block(page, "yaml"))
        (study / "train.py").write_text(block(page, "python"))
        name = fleet.json("submit", study / "own-trainer.yaml")["sweep"]["name"]
        fleet.wait_for(name)
        means = every_cell_is_filled(fleet, name)
        expect(len({tuple(row) for row in means}) == len(means) == 4, "its params reach the program")
        expect(not fleet.json("table", name).get("notes"), "and nothing is amiss with its table")

        history_is_kept(fleet)

        say("a worker without the folder refuses the trial, which waits for one that has it")
        fleet.stop("willing")
        file = study / "own-trainer.yaml"
        file.write_text(file.read_text().replace("name: own-trainer", "name: elsewhere"))
        fleet.ablate("submit", file)
        study.rename(fleet.home / "moved")
        fleet.start_worker("without", "--slots", 2, "--allow-commands")
        fleet.until(lambda: any("missing working folder" in t["reason"] for t in fleet.trials("elsewhere")), "a waiting trial names the folder")
        expect(all(t["state"] in ("TRIAL_STATE_QUEUED", "TRIAL_STATE_LEASED") for t in fleet.trials("elsewhere")),
               "no trial has failed for it")


main()
