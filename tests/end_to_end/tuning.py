# SPDX-License-Identifier: Apache-2.0
"""Rows of a trainer's sweep are tuned on images held out of train, each at the same points, though the scheduler is killed in between; then their
seeds are trained on all of train at what was best. What was chosen stays; nothing is trained twice; a row of which every point fails
says so."""
import json
import sqlite3
import sys

from fleet import BIN, Fleet, expect, say

SWEEP = """ablate: 1
name: {name}
base:
  model: {{preset: simple-vit-nano, patch: 8}}
  data: {{name: shapes, train_images: 100, val_images: 20, image_size: 32}}
  recipe: {{use: demo, epochs: 1, batch: 20}}
rows:
  - {{id: shallow, set: {{model.depth: 1}}}}
  - {{id: deep, set: {{model.depth: 2}}}}
seeds: {seeds}
tune: {{recipe.lr: {{min: 1e-4, max: 1e-2, log: true}}, budget: 2, metric: val/loss, on: seeds 100-101, held_out: 20}}
table: {{baseline: shallow, columns: [{{name: acc, metric: val/top1}}]}}
"""

# fails for the row that asks for it, whatever its parameters are
PROGRAM = """
import json, sys
row, lr, split = sys.argv[1:4]
if row == "broken":
    sys.exit("this row never works")
print(json.dumps({"event": "metric", "step": 1, "values": {"acc": 50 - abs(float(lr) - 2)}}))
"""


def trained(fleet):
    """What trials stand at, as (depth, seed, learning rate, images held out)."""
    with sqlite3.connect(f"file:{fleet.store}?mode=ro", uri=True) as store:
        return [(config["model"]["depth"], config["seed"], config["recipe"]["lr"], config["data"].get("held_out", 0))
                for config in (json.loads(text) for text, in store.execute("SELECT config FROM trial WHERE state = 'completed' AND command_json = '' ORDER BY id"))]


def of_images(fleet):
    file = fleet.home / "tuned.yaml"
    file.write_text(SWEEP.format(name="tuned", seeds=2))
    say("a plan counts the tuning trials and the reported ones")
    plan = fleet.json("plan", file)
    expect(plan["trials"] == 4 and plan["tuning"]["trials"] == 8, "4 are reported, by 8 the rows are tuned")
    expect("before these the rows are tuned: 8 tuning trials, 0 stored" in fleet.ablate("plan", file).stdout, "and people read so")

    say("the scheduler is killed while rows are tuned")
    fleet.ablate("submit", file)
    fleet.until(lambda: len(trained(fleet)) >= 3, "some have ended")
    fleet.kill("scheduler")
    fleet.start_scheduler()
    expect(fleet.json("show", "tuned")["summary"]["tuning"]["trials"]["total"] == 8, "how far the tuning is, is said")
    fleet.wait_for("tuned")

    say("each row's seeds are trained on all of train at its best point")
    trials = trained(fleet)
    tuning, reported = [t for t in trials if t[3]], [t for t in trials if not t[3]]
    expect(len(tuning) == 8 and len(reported) == 4, f"nothing more was trained: {trials}")
    expect({t[1] for t in tuning} == {100, 101} and {t[1] for t in reported} == {0, 1}, "with the seeds of each")
    expect({t[2] for t in tuning if t[0] == 1} == {t[2] for t in tuning if t[0] == 2}, "both rows had the same points")
    rows = {row["id"]: row for row in fleet.json("table", "tuned")["rows"]}
    expect(list(rows) == ["shallow", "deep"] and all(row["cells"][0]["n"] == 2 for row in rows.values()), "the table has the rows alone")
    points = {row["row"]: row for row in fleet.json("table", "tuned", "--tuning")["rows"]}
    for depth, row in ((1, "shallow"), (2, "deep")):
        best = min(points[row]["points"], key=lambda point: point["mean"])
        expect({t[2] for t in reported if t[0] == depth} == {float(best["values"]["recipe.lr"])}, f"{row} at the lowest mean loss")
    shown = fleet.ablate("show", "tuned").stdout
    expect("tuning: 8 of 8, 2 of 2 rows tuned" in shown and "ablate table tuned.tuning" in shown, "it is shown")
    expect("tuned.tuning" in fleet.ablate("ls").stdout, "the tuning trials are a sweep of their own")
    expect("recipe.lr" in fleet.ablate("table", "tuned.tuning").stdout, "whose table has every point")

    say("more seeds: at what was chosen, without another tuning")
    file.write_text(SWEEP.format(name="tuned", seeds=3))
    fleet.ablate("extend", file, "--yes")
    fleet.wait_for("tuned")
    more = trained(fleet)[len(trials):]
    expect(sorted(t[:2] for t in more) == [(1, 2), (2, 2)] and all(not t[3] for t in more), f"seed 2 of each row: {more}")
    expect({t[2] for t in more if t[0] == 1} == {t[2] for t in reported if t[0] == 1}, "at the values that were chosen")

    say("another sweep of the same rows trains nothing")
    file.write_text(SWEEP.format(name="again", seeds=3))
    fleet.ablate("submit", file)
    fleet.wait_for("again")
    expect(len(trained(fleet)) == len(trials) + 2, "all of it is stored")


def main():
    with Fleet("tuning") as fleet:
        fleet.start_scheduler()
        fleet.start_worker("worker", "--slots", 2, "--allow-commands")

        say("a row of which every point fails is not trained at the default")
        program = fleet.home / "program.py"
        program.write_text(PROGRAM)
        file = fleet.home / "fails.yaml"
        file.write_text(json.dumps({
            "ablate": 1, "name": "fails",
            "command": {"argv": [sys.executable, str(program), "{params.row}", "{params.lr}", "{params.split}"],
                        "params": {"row": "", "lr": 7, "split": "all"}},
            "rows": [{"id": row, "set": {"params.row": row}} for row in ("works", "broken")],
            "tune": {"params.lr": [1, 2, 3], "budget": 3, "metric": "acc", "better": "higher", "held_out": {"params.split": "tune"}},
            "table": {"columns": [{"name": "acc", "metric": "acc", "better": "higher"}]}}))
        fleet.ablate("submit", file)
        fleet.until(lambda: fleet.json("show", "fails")["summary"]["state"] == "SWEEP_STATE_FAILED", "it has failed")
        rows = {row["id"]: row["cells"][0] for row in fleet.json("table", "fails")["rows"]}
        expect(rows["works"]["mean"] == 50 and rows["broken"]["n"] == 0, "the row that works was trained at its best, the other not at all")
        expect("1 cannot be tuned" in fleet.ablate("show", "fails").stdout, "which is said")

        if (BIN / "ablate-trainer").exists():
            of_images(fleet)


if __name__ == "__main__":
    main()
