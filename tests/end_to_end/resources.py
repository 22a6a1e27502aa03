# SPDX-License-Identifier: Apache-2.0
"""What a training by the real programs takes of its machine is sampled, stored and told: by `ablate where`, over HTTP and in the results
file; and what a command takes whose processes come and go. No number of a result depends on it."""
import json
import re
import sqlite3
import sys
import urllib.request

from fleet import Fleet, expect, say

TRAINED = {
    "ablate": 1, "name": "trained",
    "base": {"model": {"family": "simple-vit", "dim": 48, "depth": 2, "heads": 3, "dim_head": 16, "patch": 8},
             "data": {"name": "shapes", "train_images": 800, "val_images": 100},
             "recipe": {"use": "demo", "epochs": 4000, "batch": 20, "eval_every": 100}},
    "rows": [{"id": "a"}], "table": {"columns": [{"name": "top1", "metric": "val/top1"}]},
}

# one child after the other holds memory, writes, and computes for 1.5 s of a processor
CHILD = """
import os, time
held = bytearray(os.urandom(1)) * (80 << 20)
with open(os.environ["ABLATE_RUN_DIR"] + "/out", "wb") as out:
    out.write(held[:4 << 20])
    out.flush()
    os.fsync(out.fileno())
while time.process_time() < 1.5:
    pass
"""
SPAWNS = f"""
import subprocess, sys
for i in range(4):
    subprocess.run([sys.executable, "-c", {CHILD!r}], check=True)
print('{{"event": "metric", "step": 1, "values": {{"done": 1}}}}')
"""


def over_http(fleet, run):
    log = (fleet.home / "scheduler.log").read_text()
    url = re.search(r"http://127\.0\.0\.1:\d+", log)[0]
    with urllib.request.urlopen(f"{url}/api/v1/runs/{run}/resources", timeout=60) as answer:
        return json.load(answer)


def used(fleet, run):
    """What `ablate where` says of it, when its last samples have come."""
    return fleet.json("where", run)["resources"]


def check_training(fleet):
    sweep = fleet.home / "trained.yaml"
    sweep.write_text(json.dumps(TRAINED))
    fleet.ablate("submit", sweep)
    run = fleet.until(lambda: fleet.running("trained"), "it trains")["run"]
    fleet.until(lambda: (used(fleet, run) or {}).get("samples", 0) >= 4, "a few samples have come while it trains")
    fleet.ablate("cancel", "trained")
    fleet.until(lambda: not fleet.running("trained"), "it has stopped")
    use = used(fleet, run)
    print(use)
    expect(0.05 < use["cpu_cores"] <= 64, "it used a processor")
    expect(20 << 20 < use["peak_memory_bytes"] < 64 << 30, "its memory is that of a process with LibTorch")
    expect(0 <= use["data_wait"] <= 1, "the trainer says how long it waited for its data")
    expect(use["gpu"] is None and use["peak_gpu_memory_bytes"] is None, "what a processor's slot has not is absent")
    line = next(text for text in fleet.ablate("where", run).stdout.splitlines() if text.startswith("resources"))
    expect(re.fullmatch(r"resources +peak memory .*, CPU \d+\.\d\d cores on average, waited for data \d+\.\d % of the training \(\d+ samples\)", line),
           f"'{line}' says it in words")
    answer = over_http(fleet, run)
    series = {each["name"]: each for each in answer["series"]}
    expect({"cpu", "memory", "data_wait", "free"} <= set(series), "the API has a series of each")
    expect(answer["use"]["samples"] == use["samples"] == answer["samples"], "and all samples")
    expect(max(series["memory"]["means"]) == use["peak_memory_bytes"], "whose highest is the peak")
    expect(series["cpu"]["at_s"] == sorted(series["cpu"]["at_s"]), "by ascending time")
    with sqlite3.connect(f"file:{fleet.store}?mode=ro", uri=True) as store:
        stored = store.execute("SELECT sweep, row, seed, samples, cpu_cores, gpu FROM run_resources WHERE run = ?", (run,)).fetchone()
    expect(stored == ("trained", "a", 0, use["samples"], use["cpu_cores"], None), "the results file's view says the same")


def check_command(fleet):
    program, sweep = fleet.home / "spawns.py", fleet.home / "spawns.yaml"
    program.write_text(SPAWNS)
    sweep.write_text(json.dumps({
        "ablate": 1, "name": "spawns", "command": {"argv": [sys.executable, str(program)]}, "rows": [{"id": "a"}],
        "table": {"columns": [{"name": "done", "metric": "done"}]}}))
    fleet.ablate("submit", sweep)
    fleet.wait_for("spawns")
    run = fleet.trials("spawns")[0]["run"]
    use = fleet.until(lambda: used(fleet, run), "its samples have come")
    print(use)
    computed = use["cpu_cores"] * use["seconds"]
    expect(0.5 < computed < 8, f"{computed:.2f} s of a processor were seen of the 6 s that its children took")
    expect(use["peak_memory_bytes"] > 60 << 20, "a child's memory is the run's")
    expect(use["data_wait"] is None, "a command that reports no waiting has none")
    expect(use["written_bytes"] is None or use["written_bytes"] == 0 or use["written_bytes"] >= 4 << 20,
           "what children wrote that have ended is counted, where this disk counts at all")


def main():
    with Fleet("resources") as fleet:
        fleet.start_scheduler()
        fleet.start_worker("worker", "--slots", 1, "--threads", 1, "--allow-commands")
        check_training(fleet)
        check_command(fleet)
        say("done")


if __name__ == "__main__":
    main()
