# SPDX-License-Identifier: Apache-2.0
"""Small trials share a slot once it is known what they take, tables say so; and earlier runs say when a sweep will be complete."""
from fleet import Fleet, expect

SWEEP = """ablate: 1
name: {name}
command:
  argv:
    - python3
    - -c
    - |
      import json, pathlib, sys, time
      values = {{"acc": 50 + int(sys.argv[1]), "images_per_s": 100, "memory_bytes": 500 * 2**20}}
      print(json.dumps({{"event": "metric", "step": 1, "values": values}}), flush=True)
      while not (pathlib.Path("{home}") / f"go-{{sys.argv[1]}}").exists():
          time.sleep(0.05)
    - "{{seed}}"
rows: [{{id: a, label: a}}]
seeds: {seeds}
resources: {{pack: true}}
table: {{columns: [{{name: acc, metric: acc}}, {{name: rate, metric: images_per_s}}]}}
"""


def main():
    with Fleet("packing") as fleet:
        def write(name, seeds):
            file = fleet.home / f"{name}.yaml"
            file.write_text(SWEEP.format(name=name, home=fleet.home, seeds=seeds))
            return file

        def running():
            return {t["seed"] for t in fleet.trials("small") if t["state"] == "TRIAL_STATE_RUNNING"}

        def go(*seeds):
            for seed in seeds:
                (fleet.home / f"go-{seed}").touch()

        fleet.start_scheduler()
        fleet.start_worker("w", "--slots", 1, "--slot-memory", 2048, "--allow-commands")
        fleet.until(lambda: fleet.json("workers")["workers"], "the worker is connected")
        file = write("small", 6)
        forecast = fleet.json("plan", file)["forecast"]
        expect(forecast["unknown"] == "no trial of row a has completed" and "seconds" not in forecast, "nothing is claimed of what has never run")
        fleet.ablate("submit", file)
        first = fleet.until(running, "the first trial runs")
        expect(len(first) == 1, "a row's first run has its slot for itself")
        go(*first)
        together = fleet.until(lambda: len(now := running()) >= 3 and now, "three share the slot")
        expect(len(together) == 3, "and a tenth of its memory is left")
        forecast = fleet.json("ls")["sweeps"][0]["forecast"]
        expect(forecast["seconds"] > 0 and forecast["runs"] == 1, "the run that has completed says when the sweep will be complete")
        expect("complete in about" in fleet.ablate("show", "small").stdout, "and people are told")
        go(*together)
        rest = fleet.until(lambda: len(now := running() - together) == 2 and now, "the last two run")
        go(*rest)
        fleet.wait_for("small")
        accuracy, rate = fleet.json("table", "small")["rows"][0]["cells"]
        expect(accuracy["packed"] == 0 and rate["packed"] == 5, "rates of runs that shared a slot are marked, what they learnt is not")
        table = fleet.ablate("table", "small").stdout
        expect("‡" in table and "shared their GPU with up to 2 others" in table, "with a note")
        forecast = fleet.json("plan", write("more", 12))["forecast"]
        expect(forecast["runs"] == 6 and forecast["seconds"] > 0, "a new sweep of that row will be complete as its earlier runs say")


if __name__ == "__main__":
    main()
