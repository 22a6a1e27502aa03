# SPDX-License-Identifier: Apache-2.0
"""A sweep that grows: more rows and seeds, though the scheduler is killed in the middle of it; a mended command; a budget that is
spent and given again; seeds until enough is known; and, where there is a trainer, more epochs from a checkpoint."""
import json
import sqlite3
import sys

from fleet import BIN, Fleet, expect, say

# a step, and a value that the row and the seed decide
PROGRAM = """
import json, random, sys
level, seed = float(sys.argv[1]), int(sys.argv[2])
noise = random.Random(seed * 1000 + int(level)).gauss(0, 1)
print(json.dumps({"event": "metric", "step": 1, "values": {"acc": level + noise * (5 if level < 15 else 0.001)}}))
"""


def rows_of(fleet, name):
    return {row["id"]: row for row in fleet.json("table", name)["rows"]}


def epochs(fleet):
    say("more epochs at a constant learning rate go on from a checkpoint")
    sweep = """ablate: 1
name: longer
base:
  model: {preset: simple-vit-nano, patch: 8}
  data: {name: shapes, train_images: 200, val_images: 50, image_size: 32}
  recipe: {use: demo, schedule: constant, warmup: 0, epochs: EPOCHS, batch: 20, eval_every: 1}
rows: [{id: a}]
table: {columns: [{name: acc, metric: val/top1}]}
"""
    file = fleet.home / "longer.yaml"
    file.write_text(sweep.replace("EPOCHS", "2"))
    fleet.ablate("submit", file)
    fleet.wait_for("longer")
    file.write_text(sweep.replace("EPOCHS", "4"))
    said = fleet.json("extend", file, "--yes")
    expect(said["continued_trials"] == 1 and "last checkpoints" in said["changes"][0], "and the extension says so")
    fleet.wait_for("longer")
    with sqlite3.connect(f"file:{fleet.store}?mode=ro", uri=True) as store:
        steps, total, before = store.execute("SELECT resumed_from_step, total_steps, resumed_from_run FROM run ORDER BY id DESC LIMIT 1").fetchone()
        ended = store.execute("SELECT MAX(step) FROM run WHERE id = ?", (before,)).fetchone()[0]
    expect(steps == ended == total // 2, f"it did the second half alone: {steps} of {total} steps were there")
    said = fleet.ablate("show", "longer").stdout
    expect("before revision 2: a/0, completed" in said, "the shorter run is listed")


def main():
    with Fleet("growing") as fleet:
        program = fleet.home / "program.py"
        program.write_text(PROGRAM)

        def write(name, levels, seeds, version="v1"):
            file = fleet.home / f"{name}.yaml"
            file.write_text(json.dumps({
                "ablate": 1, "name": name, "seeds": seeds,
                "command": {"argv": [sys.executable, str(program), "{params.level}", "{seed}"], "params": {"level": 0},
                            "version": version, "reuse": True},
                "rows": [{"id": row, "set": {"params.level": level}} for row, level in levels.items()],
                "table": {"baseline": "a", "columns": [{"name": "acc", "metric": "acc", "better": "higher"}]}}))
            return file

        fleet.start_scheduler()
        fleet.start_worker("worker", "--slots", 2, "--allow-commands")
        fleet.ablate("submit", write("grows", {"a": 20, "b": 30}, 2))
        fleet.wait_for("grows")
        before = rows_of(fleet, "grows")

        say("another file under the name is refused, and the word that would do is said")
        file = write("grows", {"c": 40, "a": 20, "b": 30}, 3)
        refused = fleet.ablate("submit", file, check=False)
        expect(refused.returncode == 2 and "ablate extend" in refused.stderr, "submit names extend")
        expect(fleet.json("extend", file, "--dry-run")["new_trials"] == 5, "a dry run counts the gaps")
        expect(fleet.ablate("extend", file, check=False).returncode == 2, "nobody can be asked here")

        say("the scheduler is killed in the middle of the extension: the old sweep is there")
        fleet.stop("scheduler")
        fleet.environment["ABLATE_FAIL_POINTS"] = "scheduler.submit=kill"
        fleet.start_scheduler()
        killed = fleet.ablate("extend", file, "--yes", check=False)
        expect(killed.returncode != 0, "nobody heard yes")
        fleet.processes.pop("scheduler").wait()
        del fleet.environment["ABLATE_FAIL_POINTS"]
        fleet.start_scheduler()
        expect(fleet.json("show", "grows")["summary"]["revision"] == 1 and rows_of(fleet, "grows").keys() == {"a", "b"}, "as it was")

        say("extended: only the gaps run")
        said = fleet.json("extend", file, "--yes")
        expect(said["new_trials"] == 5 and said["kept_trials"] == 4, "five trials are new")
        fleet.wait_for("grows")
        after = rows_of(fleet, "grows")
        expect(list(after) == ["c", "a", "b"] and all(row["cells"][0]["n"] == 3 for row in after.values()), "the table is whole")
        runs = lambda row: [run["run"] for run in row["cells"][0]["runs"]]
        expect(all(runs(after[row])[:2] == runs(before[row]) for row in "ab"), "and the runs that were there are in it")
        expect(not fleet.json("extend", file, "--yes")["changed"], "the same file again changes nothing")
        shown = fleet.ablate("show", "grows").stdout
        expect("revision 2" in shown and "row c: new; seed 2: new" in shown, f"its history is shown")

        say("a mended command: values of the older version until the new ones are there")
        fleet.stop("worker")
        said = fleet.json("extend", write("grows", {"c": 40, "a": 20, "b": 30}, 3, "v2"), "--yes")
        expect(said["former_trials"] == 9 and said["new_trials"] == 9, "all run again")
        text = fleet.ablate("table", "grows").stdout
        expect(text.count(" §") >= 3 and "version v1" in text, "the old values are marked")
        fleet.start_worker("worker", "--slots", 2, "--allow-commands")
        fleet.wait_for("grows")
        expect("§" not in fleet.ablate("table", "grows").stdout, "the new ones are not")

        say("a budget is spent, said, and given again")
        fleet.ablate("submit", write("bounded", {"a": 100, "b": 200}, 2), "--max-gpu-hours", "0.0000001")
        fleet.until(lambda: fleet.json("show", "bounded")["summary"]["spent"], "it is spent")
        fleet.until(lambda: all("budget spent" in t["reason"] for t in fleet.trials("bounded") if t["state"] == "TRIAL_STATE_QUEUED"),
                    "what waits says so")
        expect(fleet.ablate("resume", "bounded", check=False).returncode != 0, "to resume it takes a budget")
        fleet.ablate("resume", "bounded", "--max-gpu-hours", 1)
        fleet.wait_for("bounded")

        say("seeds until enough is known")
        fleet.ablate("submit", write("adaptive", {"a": 10, "b": 50}, {"min": 2, "max": 5, "until": "ci(acc) < 0.5"}))
        fleet.wait_for("adaptive")
        rows = rows_of(fleet, "adaptive")
        expect(rows["b"]["cells"][0]["n"] == 2, "a row that agrees has the fewest")
        expect(rows["a"]["cells"][0]["n"] == 5, "a noisy one the most")
        shown = fleet.ablate("show", "adaptive").stdout
        expect("look 1 of 4" in shown and "that is the most" in shown, "and it is said why")
        table = fleet.json("table", "adaptive")
        expect(table["sequential"]["looks"] == 4, "the table says that looks were taken")
        expect("2 rows × 2 to 5 seeds" in shown, "and how many seeds there may be")

        say("seeds until rows are told apart, by the p-values of the table, though the scheduler is killed in between")
        file = write("told", {"a": 10, "b": 60, "copy": 10, "like": 12}, {"min": 3, "max": 6, "until": "decided(acc)"})
        fleet.ablate("submit", file)
        fleet.until(lambda: any(t["seed"] == "3" for t in fleet.trials("told")), "a row gets a fourth seed")
        fleet.kill("scheduler")
        fleet.start_scheduler()
        expect("already" in fleet.ablate("submit", file).stdout, "the same file is the same sweep, though it has grown")
        fleet.wait_for("told")
        why = {row["row"]: row["why"] for row in fleet.json("show", "told")["seeding"]["rows"]}
        rows = rows_of(fleet, "told")
        for row in ("b", "like"):
            cell = rows[row]["cells"][0]
            expect(why[row].startswith("decided") == (cell["p_corrected"] < 0.05), f"{row}: {why[row]}; {cell['comparison']['why']}")
        expect("the trials of row a" in why["copy"], "a copy of the baseline is none to compare")
        expect(rows["copy"]["cells"][0]["mean"] == rows["a"]["cells"][0]["mean"], "and has all of its values")
        if (BIN / "ablate-trainer").exists():
            fleet.stop("worker")
            fleet.start_worker("trainer", "--slots", 1)
            epochs(fleet)


main()
