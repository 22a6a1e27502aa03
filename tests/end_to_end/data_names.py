# SPDX-License-Identifier: Apache-2.0
"""Data sets by name on several workers: one that is pushed trains where it was not; one that changes on its disk keeps trials away
without a restart, until it is mended or the name is pinned anew; who has what is listed."""
import random
import shutil
import struct
import time
import zlib

from fleet import Fleet, expect

SWEEP = """ablate: 1
name: {name}
base:
  model:  {{family: simple-vit, dim: 16, depth: 1, heads: 1, dim_head: 16, patch: 8}}
  data:   {{name: {data}, classes: 3, image_size: 32}}
  recipe: {{use: demo, epochs: 1, batch: 10, lr: {lr}}}
rows: [{{id: only, set: {{}}}}]
seeds: [0]
table: {{baseline: only, columns: [{{name: acc, metric: val/top1}}]}}
"""


def png(colour, side=32):
    """A square of noise around a colour."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    chance = random.Random(str(colour))
    rows = b"".join(b"\0" + bytes(min(255, max(0, part + chance.randrange(-40, 40))) for _ in range(side) for part in colour[:3]) for _ in range(side))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def write_images(folder):
    for split, count in (("train", 20), ("val", 8)):
        for name, colour in (("red", (200, 60, 60)), ("green", (60, 200, 60)), ("blue", (60, 60, 200))):
            (folder / split / name).mkdir(parents=True)
            for i in range(count):
                (folder / split / name / f"{i}.png").write_bytes(png((*colour, split, i)))


def submit(fleet, name, data, lr="1e-3"):
    (fleet.home / f"{name}.yaml").write_text(SWEEP.format(name=name, data=data, lr=lr))
    fleet.ablate("submit", fleet.home / f"{name}.yaml")


def names(fleet):
    return {name["name"]: name for name in fleet.json("data", "ls").get("names", [])}


def on(fleet, name, worker):
    """What a worker has of a name."""
    return next((w for w in names(fleet).get(name, {}).get("workers", []) if w["worker"] == worker), {})


def pushed(fleet):
    """Nobody has the data but who pushes them."""
    write_images(fleet.home / "images")
    fleet.start_worker("plain", "--slots", 1, "--threads", 1)
    submit(fleet, "early", "colours")
    fleet.until(lambda: "colours" in fleet.trials("early")[0]["reason"], "the trial waits for a worker that has its data")
    refused = fleet.ablate("data", "push", "no name", fleet.home / "images", check=False)
    expect(refused.returncode == 2 and "invalid data name 'no name'" in refused.stderr, refused.stderr.strip())
    refused = fleet.ablate("data", "push", "colours", fleet.home / "absent", check=False)
    expect(refused.returncode == 2 and "no such folder or file" in refused.stderr, refused.stderr.strip())
    said = fleet.ablate("data", "push", "colours", fleet.home / "images").stdout
    expect("workers without it fetch it" in said, said.strip())
    fleet.ablate("data", "push", "colours", fleet.home / "images")  # the same again changes nothing
    fleet.wait_for("early")
    trial = fleet.trials("early")[0]
    expect(trial["state"] == "TRIAL_STATE_COMPLETED", f"a worker that did not have them trains on them: {trial}")
    expect("come from the scheduler's depot" in fleet.ablate("logs", trial["run"]).stdout, "and its log says where they came from")
    kept = list(fleet.home.glob("plain/data/*.abldata"))
    expect(len(kept) == 1, f"it keeps them: {kept}")
    named = names(fleet)["colours"]
    expect(named["pushed"]["fingerprint"] == named["fingerprint"], "the fingerprint that was announced is what the training read")
    expect("pushed by" in fleet.ablate("data", "ls").stdout, fleet.ablate("data", "ls").stdout)

    # a damaged copy of the worker's is not trained on
    fleet.stop("plain")
    with open(kept[0], "r+b") as file:
        file.seek(kept[0].stat().st_size // 2)
        file.write(b"damage")
    fleet.start_worker("plain", "--slots", 1, "--threads", 1)
    submit(fleet, "later", "colours", "2e-3")
    fleet.wait_for("later")
    expect("is damaged: it is fetched again" in (fleet.home / "plain.log").read_text(), "a copy that was damaged is fetched again")
    expect(fleet.trials("later")[0]["state"] == "TRIAL_STATE_COMPLETED", "and the trial completes")

    (fleet.home / "images/train/red/0.png").write_bytes(png((1, 2, 3), side=48))
    refused = fleet.ablate("data", "push", "colours", fleet.home / "images", check=False)
    expect(refused.returncode != 0 and "the results under 'colours' are of" in refused.stderr, refused.stderr.strip())
    fleet.ablate("data", "rm", "colours", "--yes")
    expect("pushed" not in names(fleet)["colours"], "what is removed is offered no more")


def changed_and_pinned_anew(fleet):
    for worker in ("a", "b"):
        write_images(fleet.home / f"images-{worker}")
        fleet.start_worker(worker, "--slots", 1, "--threads", 1, "--data", f"mine={fleet.home}/images-{worker}")
    fleet.until(lambda: on(fleet, "mine", "a").get("fingerprint") and on(fleet, "mine", "b").get("fingerprint"), "both say what they have")
    submit(fleet, "one", "mine")
    fleet.wait_for("one")
    first = names(fleet)["mine"]["fingerprint"]
    expect(names(fleet)["mine"]["trials"] == 1 and first == on(fleet, "mine", "a")["fingerprint"], "the first run pins the name")
    read = (fleet.home / "a/data.json").stat().st_mtime_ns
    fleet.stop("a")
    fleet.start_worker("a", "--slots", 1, "--threads", 1, "--data", f"mine={fleet.home}/images-a")
    fleet.until(lambda: on(fleet, "mine", "a").get("fingerprint") == first, "a worker that starts again knows what it has")
    expect((fleet.home / "a/data.json").stat().st_mtime_ns == read, "without reading it again")

    # a file changes beneath a worker that runs: the trial goes to the other
    shutil.copy(fleet.home / "images-a/train/red/0.png", fleet.home / "0.png")
    (fleet.home / "images-a/train/red/0.png").write_bytes(png((9, 9, 9), side=40))
    fleet.ablate("workers", "drain", "b")
    submit(fleet, "two", "mine", "2e-3")
    fleet.until(lambda: "this store's results are of" in fleet.trials("two")[0]["reason"], "a changed data set is noticed, and its trial waits")
    # at once, or with the worker's next look where the run was the first to notice
    fleet.until(lambda: "another version" in fleet.ablate("data", "ls").stdout, "people see which worker has another version", 60)
    second = on(fleet, "mine", "a")["fingerprint"]
    fleet.ablate("workers", "resume", "b")
    fleet.wait_for("two")
    expect(fleet.trials("two")[0]["worker"] == "b", "the worker that has the same takes it")

    # it is meant: the name stands for the new content from now on
    refused = fleet.ablate("data", "repin", "mine", "--from", "a", check=False)
    expect(refused.returncode == 2 and first == names(fleet)["mine"]["fingerprint"], f"nobody is asked here, so nothing is done: {refused.stderr.strip()}")
    said = fleet.ablate("data", "repin", "mine", "--from", "a", "--yes").stdout
    expect(second in said and "2 results" in said, said.strip())
    submit(fleet, "three", "mine")  # as the first
    fleet.wait_for("three")
    trial = fleet.trials("three")[0]
    expect(trial["worker"] == "a" and trial["id"] != fleet.trials("one")[0]["id"], "the same sweep of other images is trained, where these are")
    named = names(fleet)["mine"]
    expect((named["fingerprint"], named["trials"], named["other_trials"]) == (second, 1, 2), f"results keep what they are of: {named}")

    # mended in place
    shutil.copy(fleet.home / "0.png", fleet.home / "images-a/train/red/0.png")
    fleet.ablate("data", "repin", "mine", first, "--yes")
    fleet.ablate("workers", "drain", "b")
    submit(fleet, "four", "mine", "4e-3")
    began = time.monotonic()
    fleet.wait_for("four")
    expect(fleet.trials("four")[0]["worker"] == "a", f"mended data are used without a restart ({time.monotonic() - began:.0f} s)")
    wrong = fleet.ablate("data", "repin", "mien", first, "--yes", check=False)
    expect(wrong.returncode == 2 and "did you mean 'mine'?" in wrong.stderr, wrong.stderr.strip())


def main():
    with Fleet("names") as fleet:
        fleet.start_scheduler()
        pushed(fleet)
        fleet.stop("plain")
        changed_and_pinned_anew(fleet)


if __name__ == "__main__":
    main()
