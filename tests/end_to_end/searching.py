# SPDX-License-Identifier: Apache-2.0
"""A search finds the best of its points, over a whole range, over random ones and by halves; rows are tuned and their table says how; a
trainer's trials are judged on images held out of train."""
import csv
import io
import json
import math
import sqlite3
import sys

from fleet import BIN, Fleet, expect, say

# the best learning rate is 0.01 for width 1 and lies beyond the range for width 2; width 3 diverges above its best; more epochs are better, a
# seed is a little noise
PROGRAM = """
import json, math, sys
lr, width, epochs, split, seed = float(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4], int(sys.argv[5])
loss = abs(math.log10(lr) + (0 if width == 2 else 2)) + 1 / epochs + 0.001 * (seed % 7) + (0 if split == "tune" else 5)
if width == 3 and lr > 0.02:
    loss = float("nan")
print(json.dumps({"event": "metric", "step": 1, "values": {"loss": loss}}))
"""
LR = {"params.lr": {"min": 1e-4, "max": 0.5, "log": True}}


def points_of(fleet, name):
    return fleet.json("table", name)["rows"][0]["points"]


def main():
    with Fleet("searching") as fleet:
        program = fleet.home / "program.py"
        program.write_text(PROGRAM)

        def submit(name, **more):
            file = fleet.home / f"{name}.yaml"
            file.write_text(json.dumps({
                "ablate": 1, "name": name,
                "command": {"argv": [sys.executable, str(program), "{params.lr}", "{params.width}", "{params.epochs}", "{params.split}", "{seed}"],
                            "params": {"lr": 1, "width": 1, "epochs": 4, "split": "all"}}, **more}))
            fleet.ablate("submit", file)
            fleet.ablate("table", name)  # what is kept of it is made anew when something is chosen
            fleet.wait_for(name)

        fleet.start_scheduler()
        fleet.start_worker("worker", "--slots", 2, "--allow-commands")

        for method in ("sobol", "random"):
            say(f"a search over a learning rate, {method}")
            submit(method, search={"method": method, "over": LR, "trials": 8, "metric": "loss", "better": "lower", "seeds": [0, 1]})
            points = points_of(fleet, method)
            expect(len(points) == 8 and all(p["n"] == 2 for p in points), "8 points have two seeds each")
            tried = [float(p["values"]["params.lr"]) for p in points]
            nearest = min(tried, key=lambda lr: abs(math.log10(lr) + 2))
            best = [p for p in points if p["best"]]
            expect(len(best) == 1 and float(best[0]["values"]["params.lr"]) == nearest, f"the best, {nearest}, is the nearest to 0.01 of {tried}")
        bins = sorted(int((math.log(lr) - math.log(1e-4)) / (math.log(0.5) - math.log(1e-4)) * 8)
                      for lr in (float(p["values"]["params.lr"]) for p in points_of(fleet, "sobol")))
        expect(bins == list(range(8)), "of 8 quasi-random points each eighth of the range has one")

        say("what a search found is its table, in every form")
        text = fleet.ablate("table", "sobol").stdout
        first = text.splitlines()[1]
        expect(first.rstrip().endswith("best") and "params.lr" in text.splitlines()[0], f"the best stands first: {first}")
        lines = list(csv.DictReader(io.StringIO(fleet.ablate("table", "sobol", "--format", "csv").stdout)))
        expect(len(lines) == 8 and float(lines[0]["loss"]) == min(float(line["loss"]) for line in lines), "CSV has all, the best first")
        mean = (float(lines[0]["seed_0"]) + float(lines[0]["seed_1"])) / 2
        expect(abs(mean - float(lines[0]["loss"])) < 1e-12, "a mean is that of its seeds")
        expect(fleet.ablate("table", "sobol", "--format", "markdown").stdout.startswith("| point |"), "Markdown has the same table")
        svg = fleet.home / "points.svg"
        fleet.ablate("table", "sobol", "--plot", "tuning", "-o", svg)
        expect(svg.read_text().count("<circle") == 8, "a picture has a dot for each point")
        expect("best" in fleet.ablate("watch", "sobol").stdout, "who has watched it sees its points")
        expect("search: 16 of 16 trials of its points" in fleet.ablate("show", "sobol").stdout, "and how far it is")
        expect(fleet.ablate("table", "sobol", "--format", "latex", check=False).returncode == 2, "LaTeX has no form of points")
        expect(fleet.ablate("table", "sobol", "--store", fleet.store).stdout == text, "the results file says the same")
        expect(next(line for line in fleet.ablate("ls").stdout.splitlines() if line.startswith("sobol ")).split()[2] == "16/16",
               "a list counts the trials of its points")
        plan = fleet.ablate("plan", fleet.home / "sobol.yaml").stdout
        expect("a search: 16 distinct trials of its points, 16 stored\n" in plan and " × 0 seeds" not in plan, f"and so does a plan: {plan}")
        document = fleet.home / "points.md"
        marker = "<!-- ablate table sobol --format markdown -->\n\n"
        document.write_text(marker + fleet.ablate("table", "sobol", "--format", "markdown").stdout)
        fleet.ablate("table", "--check", document)
        written = document.read_text()
        document.write_text(written.replace(first.split()[2], "9.999"))
        wrong = fleet.ablate("table", "--check", document, check=False)
        expect(wrong.returncode == 1 and f"row {first.split()[0]}, loss: the file has '**9.999 ±" in wrong.stdout,
               f"a document of points is held to the store: {wrong.stdout}{wrong.stderr}")
        fleet.ablate("table", "--check", document, "--write")
        expect(document.read_text() == written, "and put right")

        say("by halves: few epochs first, the better points again with more")
        submit("halves", search={"halving": {"key": "params.epochs"}, "over": LR, "trials": 8, "metric": "loss", "better": "lower"})
        points = points_of(fleet, "halves")
        tried = {rung: [p for p in points if p["rung"] == rung and p["n"] > 0] for rung in (0, 1, 2)}
        expect([len(tried[rung]) for rung in tried] == [8, 4, 2], "8 points, then 4, then 2")
        expect([tried[rung][0]["rung_value"] for rung in tried] == ["1", "2", "4"], "with 1, 2 and 4 epochs")
        for rung in (1, 2):
            better = sorted(tried[rung - 1], key=lambda p: p["mean"])[:len(tried[rung])]
            expect({p["point"] for p in better} == {p["point"] for p in tried[rung]}, "the better half went on")
        best = [p for p in points if p["best"]]
        expect(best[0]["mean"] == min(p["mean"] for p in tried[2]) and best[0]["rung"] == 2, "the best has all epochs")
        expect("of 2 points with all params.epochs" in fleet.ablate("table", "halves").stdout, "of these two alone is said how far they are apart")
        with sqlite3.connect(f"file:{fleet.store}?mode=ro", uri=True) as store:
            runs = store.execute("SELECT COUNT(*) FROM run").fetchone()[0]
        expect(runs == 16 + 16 + 14, f"nothing ran twice: {runs} runs")

        say("rows are tuned, each at the same points, and the table says how")
        submit("tuned", rows=[{"id": "a", "set": {"params.width": 1}}, {"id": "b", "set": {"params.width": 2}},
                             {"id": "c", "set": {"params.width": 3}}], seeds=[0, 1],
               tune={**LR, "budget": 4, "metric": "loss", "better": "lower", "on": "seeds 100-101", "held_out": {"params.split": "tune"}},
               table={"columns": [{"name": "loss", "metric": "loss", "better": "lower"}]})
        tuning = fleet.json("table", "tuned", "--tuning")
        a, b, c = tuning["rows"]
        expect([p["values"] for p in a["points"]] == [p["values"] for p in b["points"]], "both rows have the same points")
        expect(all(p["mean"] < 5 for p in a["points"]), "they were judged on what was held out")
        largest = max(float(p["values"]["params.lr"]) for p in b["points"])
        chosen = float(b["points"][b["best"]]["values"]["params.lr"])
        expect(chosen == largest and any("largest" in warning for warning in b["warnings"]), "the best of b lies at the end of the range: a warning")
        expect([p["n"] for p in c["points"]].count(0) == 1 and not any("largest" in warning for warning in c["warnings"]),
               f"a larger one than the best of c was tried and diverged: {c['warnings']}")
        table = fleet.json("table", "tuned")
        for row, tuned in zip(table["rows"], (a, b)):
            lr = tuned["points"][tuned["best"]]["values"]["params.lr"]
            width = 1 if row["id"] == "a" else 2
            expect(row["tuned"].startswith(f"params.lr {lr}, the best of 4 points"), f"row {row['id']} says {row['tuned']}")
            wanted = abs(math.log10(float(lr)) + (2 if width == 1 else 0)) + 0.25 + 0.0005 + 5
            expect(abs(row["cells"][0]["mean"] - wanted) < 1e-9, "its seeds were run there, on what is reported")
        expect(any(note.startswith("tuned: each row at the best of 4 points (sobol)") for note in table["notes"]), "and so does a note")
        text = fleet.ablate("table", "tuned", "--tuning").stdout
        document.write_text("<!-- ablate table tuned --tuning -->\n\n```\n" + text + "```\n")
        fleet.ablate("table", "--check", document)
        expect("warning: b: its params.lr" in text, "--tuning prints the warning")
        refused = fleet.ablate("table", "sobol", "--stats", "--tuning", check=False)
        expect(refused.returncode == 2, "--tuning stands alone")

        if not (BIN / "ablate-trainer").exists():
            return
        say("a trainer's points are judged on images held out of train")
        file = fleet.home / "images.yaml"
        file.write_text("""ablate: 1
name: images
base:
  model: {preset: simple-vit-nano}
  data: {name: shapes, train_images: 100, val_images: 20, image_size: 32}
  recipe: {use: demo, epochs: 1, batch: 20}
search: {over: {recipe.lr: {min: 1e-4, max: 1e-2, log: true}}, trials: 2, metric: val/loss, held_out: 0.2}
""")
        fleet.ablate("submit", file)
        fleet.wait_for("images")
        points = points_of(fleet, "images")
        expect(len(points) == 2 and [p["best"] for p in points].count(True) == 1, "one of two is the best")
        with sqlite3.connect(f"file:{fleet.store}?mode=ro", uri=True) as store:
            run, steps = store.execute("SELECT id, total_steps FROM run ORDER BY id DESC LIMIT 1").fetchone()
        expect(steps == 4, "80 of 100 images in batches of 20 are 4 steps")
        expect("20 of 100 training images are held out" in fleet.ablate("logs", run).stdout, "and its log says so")


if __name__ == "__main__":
    main()
