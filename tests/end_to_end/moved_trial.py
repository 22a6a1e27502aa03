# SPDX-License-Identifier: Apache-2.0
"""The machine of a trial is gone for good. Where the workers share a runs folder, the trial goes on from its checkpoint on another
machine; where they do not, it begins again there and says why."""
from fleet import Fleet, expect, host_names

SWEEP = """ablate: 1
name: moved
base:
  model:  {family: simple-vit, dim: 32, depth: 2, heads: 2, dim_head: 16, patch: 4}
  data:   {name: shapes, train_images: 1000, val_images: 50}
  recipe: {use: demo, epochs: 25, batch: 10}
rows: [{id: only, set: {}}]
seeds: [0]
table: {baseline: only, columns: [{name: acc, metric: val/top1}]}
"""


def moved(name, runs_of):
    """A trial whose machine `one` dies in the middle, and which `two` completes. Returns: its last run, and its log."""
    with Fleet(name) as fleet:
        fleet.start_scheduler()
        fleet.start_on("one", runs=runs_of(fleet, "one"))
        (fleet.home / "sweep.yaml").write_text(SWEEP)
        fleet.ablate("submit", fleet.home / "sweep.yaml")
        first = fleet.until(lambda: (trial := fleet.running("moved")) and fleet.json("where", trial["run"])["checkpoints"] and trial,
                            "the trial runs on one machine, and has written a checkpoint")
        fleet.lose("one")
        fleet.start_on("two", runs=runs_of(fleet, "two"))
        fleet.wait_for("moved")
        trial = fleet.trials("moved")[0]
        expect(trial["state"] == "TRIAL_STATE_COMPLETED" and trial["worker"] == "two" and trial["attempt"] == first["attempt"] + 1,
               "another machine completes it, as its next attempt")
        run = fleet.json("why", "moved", "only", "acc")["values"][0]["run"]
        return run.get("resumed_from_step", run["summary"].get("resumed_from_step", 0)), fleet.ablate("logs", trial["run"]).stdout


def main():
    host_names()
    step, log = moved("shared", lambda fleet, machine: fleet.home / "runs")
    expect(step > 0 and "resumes from step" in log, f"from the checkpoint in the folder that both see, of step {step}")
    step, log = moved("apart", lambda fleet, machine: fleet.home / machine / "runs")
    expect(step == 0 and "is on one" in log and "restarting from the beginning" in log, f"without such a folder it begins again, and says why:\n{log[:400]}")


if __name__ == "__main__":
    main()
