# SPDX-License-Identifier: Apache-2.0
"""A small real sweep on a part of CIFAR-10: one of two workers is killed in the middle of a trial; the sweep completes, and its table is,
digit for digit, that of an undisturbed run with the same seeds and threads."""
import collections
import tarfile

from fleet import Fleet, expect, say, skip, test_data

TRAIN, TEST = 250, 60  # images of each class
SWEEP = """
ablate: 1
name: cifar-part
base:
  model:  {family: simple-vit, dim: 64, depth: 3, heads: 2, dim_head: 32, patch: 4}
  data:   {name: cifar10-part, classes: 10, image_size: 32}
  recipe: {use: cifar-lite, epochs: 3, batch: 25, lr: 0.001, eval_every: 1}
rows:
  - {id: orig, label: "Orig.", set: {}}
  - {id: msf, label: "MSF, full", set: {model.attention.kernel: gaussian, model.attention.probe: inside}}
seeds: [0, 1]
table: {baseline: orig, columns: [{name: acc, metric: val/top1, take: last}, {name: loss, metric: val/loss, take: last, digits: 6},
                                  {name: params, count: params.weights}]}
retry: {max: 1}
"""


def unpack(archive, folder):
    """The first images of each class."""
    wanted = {"train": TRAIN, "test": TEST}
    taken = collections.Counter()
    with tarfile.open(archive) as tar:
        for member in tar:
            parts = member.name.split("/")  # cifar10/train/cat/12.jpg
            if not member.isfile() or len(parts) != 4 or taken[parts[1], parts[2]] >= wanted.get(parts[1], 0):
                continue
            taken[parts[1], parts[2]] += 1
            target = folder / parts[1] / parts[2] / parts[3]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(tar.extractfile(member).read())
    return sum(taken.values())


def main():
    archive = test_data() / "cifar10-jpeg.tar.gz"
    if not archive.exists():
        skip(f"no {archive}")
    with Fleet("undisturbed") as calm, Fleet("killed") as fleet:
        images = calm.home / "images"
        say(f"{unpack(archive, images)} images of CIFAR-10")
        worker_options = ("--slots", 1, "--threads", 1, "--data", f"cifar10-part={images}")

        def submit(to):
            (to.home / "sweep.yaml").write_text(SWEEP)
            to.ablate("submit", to.home / "sweep.yaml")

        say("undisturbed, two workers")
        calm.start_scheduler()
        for name in ("one", "two"):
            calm.start_worker(name, *worker_options)
        submit(calm)
        calm.wait_for("cifar-part")

        say("again, with a worker killed in the middle of a trial")
        fleet.start_scheduler()
        for name in ("one", "two"):
            fleet.start_worker(name, *worker_options)
        submit(fleet)
        trial = fleet.until(lambda: fleet.running("cifar-part", "one", step=60), "worker one is in the middle of a trial")
        say(f"kill -9 of worker one at step {trial['step']} of {trial['total_steps']} of row {trial['row']}, seed {trial['seed']}")
        fleet.kill("one")
        fleet.wait_for("cifar-part")
        again = next(t for t in fleet.trials("cifar-part") if t["id"] == trial["id"])
        expect(again["state"] == "TRIAL_STATE_COMPLETED" and again["attempt"] == 2 and again["worker"] == "two",
               "the other worker completed the lost trial in a second attempt")

        tables = [f.ablate("table", "cifar-part", "--format", "csv").stdout for f in (calm, fleet)]
        print(tables[0])
        expect(tables[0] == tables[1], "both tables are the same, digit for digit")
        cells = [f.json("table", "cifar-part") for f in (calm, fleet)]
        values = [[[r["value"] for r in c["runs"]] for row in t["rows"] for c in row["cells"]] for t in cells]
        expect(values[0] == values[1], "and so is every value that they are made of, to the last bit")
        best = max(row["cells"][0]["mean"] for row in cells[1]["rows"])
        expect(best >= 25, f"at least 25 % top-1 is reached: {best:.2f} %")


main()
