# SPDX-License-Identifier: Apache-2.0
"""What trials take is said before anything runs: from FLOPs, from a calibration that is kept, and from runs once there are some."""
import sqlite3

from fleet import Fleet, expect

SWEEP = """ablate: 1
name: small
base:
  model: {preset: simple-vit-nano}
  data: {name: shapes, train_images: 2000, val_images: 200}
  recipe: {lr: 0.001, batch: 50, epochs: 3}
rows:
  - {id: a, label: a}
  - {id: b, label: b, set: {recipe.epochs: 1}}
  - {id: c, label: c, set: {recipe.batch: 100}}
seeds: [0]
table: {columns: [{name: acc, metric: val/top1}, {name: memory, metric: memory_bytes, take: max}]}
"""


def main():
    with Fleet("predicting") as fleet:
        file = fleet.home / "small.yaml"
        file.write_text(SWEEP)

        def plan(*flags):
            answer = fleet.json("plan", file, *flags)
            return answer, {row["id"]: row for row in answer["rows"]}

        fleet.start_scheduler()
        answer, rows = plan()
        expect(rows["a"]["time"]["from"] == "flops" and "no worker is connected" in answer["time_from"][0], "without a worker a stated rate is all there is")
        fleet.start_worker("w", "--slots", 1, "--threads", 1)
        fleet.until(lambda: fleet.json("workers")["workers"], "the worker is connected")
        answer, rows = plan("--measure", "--measure-seconds", 3)
        expect(rows["a"]["time"]["from"] == "calibration" and rows["b"]["time"]["from"] == "calibration", "a and b take the same step, which was measured")
        expect(rows["c"]["time"]["from"] == "like", "c follows: within 3 seconds one step is measured")
        time = rows["a"]["time"]
        expect(0 < time["low"] < time["value"] < time["high"], f"about {time['value']:.1f} s, from {time['low']:.1f} to {time['high']:.1f}")
        expect(rows["b"]["time"]["value"] < time["value"], "a third of the steps takes less")
        expect(answer["gpu_hours"]["value"] > 0 and answer["forecast"]["predicted"] == 3, "and says when all would be complete")
        expect(plan()[1]["a"]["time"]["from"] == "calibration", "a later plan knows what was measured")
        text = fleet.ablate("plan", file).stdout
        expect("a trial takes" in text and "what is left takes" in text, "people are told")

        def predicted():
            with sqlite3.connect(f"file:{fleet.store}?mode=ro", uri=True) as store:
                return store.execute("SELECT COUNT(*) FROM predicted").fetchone()[0]

        fleet.ablate("workers", "drain", "w", "--reason", "the queue is looked at first")
        fleet.ablate("submit", file)
        fleet.until(lambda: predicted() == 3, "what is predicted of its rows is kept for forecasts", seconds=30)
        file.write_text(SWEEP.replace("seeds: [0]", "seeds: [0, 1]"))
        fleet.ablate("extend", file, "--yes")
        fleet.until(lambda: predicted() == 3, "and of a sweep that is extended as well", seconds=30)
        fleet.ablate("workers", "resume", "w")
        fleet.wait_for("small")
        _, after = plan()
        expect(all(row["time"]["from"] == "runs" for row in after.values()), "once they have run, their runs say it")
        cells = {row["id"]: row["cells"][1]["mean"] for row in fleet.json("table", "small")["rows"]}
        for name, peak in cells.items():
            expect(peak <= rows[name]["memory_bytes"] < 1.3 * peak, f"row {name} took no more memory than was predicted: {rows[name]['memory_bytes'] / peak:.2f}")


if __name__ == "__main__":
    main()
