# SPDX-License-Identifier: Apache-2.0
"""Sweeps of programs that are not ours: the Python example of the docs, and the first example of docs/sweep-file.md, as they are printed. Their
metrics are in the table."""
import re

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
