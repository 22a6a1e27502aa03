# SPDX-License-Identifier: Apache-2.0
"""A sweep of a program that is not ours: the Python example of the docs. Its metrics are in the table."""
from fleet import SOURCE, Fleet, expect, say


def main():
    sweep = SOURCE / "sweeps/examples/command.yaml"
    with Fleet("command") as fleet:
        fleet.start_scheduler()
        fleet.start_worker("careful", "--slots", 1)
        name = fleet.json("submit", sweep)["sweep"]["name"]
        fleet.until(lambda: all("--allow-commands" in t["reason"] for t in fleet.trials(name)), "the waiting trials say what they wait for")
        fleet.stop("careful")
        fleet.environment["PYTHONPATH"] = str(SOURCE / "docs/examples")  # as the sweep file's header says
        fleet.start_worker("willing", "--slots", 2, "--allow-commands")
        fleet.wait_for(name)
        print(fleet.ablate("table", name).stdout)
        table = fleet.json("table", name)
        expect(fleet.json("show", name)["summary"]["state"] == "SWEEP_STATE_COMPLETED", "every trial completed")
        metric = [i for i, c in enumerate(table["columns"]) if c["kind"] == "KIND_METRIC"]
        expect(metric and all(row["cells"][i]["n"] == row["cells"][i]["of"] for row in table["rows"] for i in metric),
               "its metrics are in every cell of the table")
        say("a second submission trains nothing again")
        expect(not fleet.json("submit", sweep)["created"], "the same sweep is the same sweep")


main()
