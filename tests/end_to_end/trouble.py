# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on real machines: one clear message each, and nothing is lost."""
import resource
import socket
import sqlite3
import subprocess
import tarfile

from fleet import BIN, Fleet, expect, skip, small_disk, test_data, with_mounts

SWEEP = """
ablate: 1
name: {name}
base:
  model:  {{family: simple-vit, dim: 16, depth: 1, heads: 2, dim_head: 8, patch: 8}}
  data:   {{name: photos, classes: 2, image_size: 32, damaged: {damaged}}}
  recipe: {{use: cifar-lite, epochs: 2, batch: 4, eval_every: 1}}
rows: [{{id: orig, label: "Orig.", set: {{}}}}]
seeds: [0]
"""

DRAWN = """
ablate: 1
name: {name}
base:
  model:  {{family: simple-vit, dim: {dim}, depth: 1, heads: 2, dim_head: 8, mlp_dim: {mlp_dim}, patch: 8}}
  data:   {{name: shapes, train_images: 60, val_images: 20}}
  recipe: {{use: demo, epochs: 1, batch: 20}}
rows: [{{id: orig, label: "Orig.", set: {{}}}}]
seeds: [0]
"""


def photos(folder, count):
    """Two classes of real photographs."""
    with tarfile.open(test_data() / "imagenet-sample.tar.gz") as tar:
        found = [m for m in tar if m.isfile()][: 2 * count]
        for number, member in enumerate(found):
            target = folder / f"class-{number % 2}" / f"{number:03}.jpg"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(tar.extractfile(member).read())
    return sorted((folder / "class-0").iterdir())[0]


def submit(fleet, name, damaged="fail"):
    (fleet.home / f"{name}.yaml").write_text(SWEEP.format(name=name, damaged=damaged))
    fleet.ablate("submit", fleet.home / f"{name}.yaml")
    fleet.wait_for(name, 120)
    return fleet.trials(name)[0]


def data_folders():
    with Fleet("data") as fleet:
        folder = fleet.home / "photos"
        damaged = photos(folder, 12)
        damaged.write_bytes(damaged.read_bytes()[:2000])
        fleet.start_scheduler()
        done = subprocess.run([str(BIN / "ablate-worker"), "--home", str(fleet.home / "w"), "--data", f"photos={fleet.home}/nowhere"],
                              env=fleet.environment, capture_output=True, text=True, timeout=60)
        expect(done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "nowhere" in done.stderr,
               f"a worker is not started with a folder that is not there: {done.stderr.strip()}")
        gone = fleet.home / "nowhere"
        gone.mkdir()
        fleet.start_worker("w", "--slots", 1, "--data", f"photos={gone}")
        fleet.until(lambda: fleet.json("workers").get("workers"), "the worker is there")
        gone.rmdir()
        (fleet.home / "gone.yaml").write_text(SWEEP.format(name="gone", damaged="skip"))
        fleet.ablate("submit", fleet.home / "gone.yaml")
        waits = fleet.until(lambda: [t["reason"] for t in fleet.trials("gone") if "not found" in t["reason"]], "the trial waits for its data")[0]
        expect("data set 'photos' not found" in waits and "nowhere does not exist" in waits, f"data that vanish are the worker's trouble: {waits}")
        gone.symlink_to(folder)
        fleet.wait_for("gone", 120)
        trial = fleet.trials("gone")[0]
        expect(trial["state"] == "TRIAL_STATE_COMPLETED", f"and the trial runs when they are back: {trial.get('reason', '')}")
        trial = submit(fleet, "damaged-fatal")
        expect(trial["state"] == "TRIAL_STATE_FAILED" and damaged.name in trial["reason"], f"a damaged image is fatal and named: {trial['reason']}")
        trial = submit(fleet, "damaged-skipped", "skip")
        expect(trial["state"] == "TRIAL_STATE_COMPLETED", "with damaged: skip the trial completes")
        log = fleet.ablate("logs", trial["run"]).stdout
        expect(damaged.name in log, "and the log names the image that was skipped")


def taken_port():
    with Fleet("port") as fleet, socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = subprocess.run([str(BIN / "ablate-scheduler"), "--store", str(fleet.store), "--listen", fleet.address, "--http-port", str(port)],
                              env=fleet.environment, capture_output=True, text=True, timeout=60)
        message = [line for line in done.stderr.splitlines() if str(port) in line]
        expect(done.returncode == 3 and len(message) == 1 and "in use" in message[0], f"a port in use: {message}")


def newer_store():
    with Fleet("newer") as fleet:
        fleet.start_scheduler()
        fleet.stop("scheduler")
        db = sqlite3.connect(fleet.store)
        version = db.execute("PRAGMA user_version").fetchone()[0]
        db.execute(f"PRAGMA user_version = {version + 1}")
        db.close()
        before = fleet.store.read_bytes()
        for program in (["ablate-scheduler", "--store", fleet.store, "--listen", fleet.address], ["ablate", "ls", "--store", fleet.store]):
            done = subprocess.run([str(BIN / program[0]), *map(str, program[1:])], env=fleet.environment, capture_output=True, text=True, timeout=60)
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            expect(done.returncode == 2 and len(lines) == 1 and "newer" in lines[0], f"{program[0]} refuses a newer store: {lines}")
        expect(fleet.store.read_bytes() == before, "and leaves it as it is")


def full_disk():
    with Fleet("disk") as fleet, small_disk(fleet, "8m") as disk:
        fill(fleet, disk)


def fill_up(file):
    with open(file, "wb", buffering=0) as filler:
        try:
            while True:
                filler.write(b"\0" * 4096)
        except OSError:
            pass


def start_on_a_full_disk():
    with Fleet("start") as fleet, small_disk(fleet, "8m") as disk:
        filler = disk / "filler"
        home = disk / "home"
        home.mkdir()
        fill_up(filler)
        for flags in ([], ["--detach"]):
            done = fleet.ablate("up", "--home", home, *flags, check=False)
            lines = done.stderr.splitlines()
            expect(done.returncode == 3 and len(lines) == 1 and str(home) in lines[0] and "No space left on device" in lines[0],
                   f"up {' '.join(flags)} on a full disk says so: {lines}")
        with open("/dev/full", "w") as full:  # where its log would lie
            done = subprocess.run([str(BIN / "ablate-scheduler"), "--store", str(home / "results.db"), "--listen", fleet.address],
                                  env=fleet.environment, stderr=full, timeout=60)
        expect(done.returncode == 3, f"a scheduler that can write neither its store nor its log ends with {done.returncode}")
        filler.unlink()
        fleet.ablate("up", "--home", home, "--detach")
        expect(fleet.ablate("down", "--home", home).returncode == 0, "with room again ablate starts")


def fill(fleet, disk):
    fleet.store = disk / "results.db"
    fleet.start_scheduler()
    fleet.start_worker("w", "--slots", 1)
    (fleet.home / "first.yaml").write_text(SWEEP.format(name="first", damaged="fail"))
    fleet.ablate("submit", fleet.home / "first.yaml")
    filler = disk / "filler"
    fill_up(filler)
    refused = None
    for number in range(200):  # the journal has some room of its own
        (fleet.home / "more.yaml").write_text(SWEEP.format(name=f"more-{number}", damaged="fail"))
        done = fleet.ablate("submit", fleet.home / "more.yaml", check=False)
        if done.returncode != 0:
            refused = (number, done)
            break
    expect(refused is not None, "a submission is refused when the disk is full")
    number, done = refused
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    expect(done.returncode == 3 and len(lines) == 1 and "full" in lines[0], f"with one clear line: {lines}")
    filler.unlink()
    names = {s["name"] for s in fleet.json("ls")["sweeps"]}
    expect(names == {"first", *(f"more-{n}" for n in range(number))}, "what was acknowledged is there, what was refused is not")
    fleet.ablate("submit", fleet.home / "more.yaml")
    expect(True, "with room again the same submission is accepted")


def worker(fleet):
    """The one worker, or nothing while it has not connected yet."""
    return next(iter(fleet.json("workers").get("workers", [])), {})


def submit_drawn(fleet, name, dim, mlp_dim):
    (fleet.home / f"{name}.yaml").write_text(DRAWN.format(name=name, dim=dim, mlp_dim=mlp_dim))
    fleet.ablate("submit", fleet.home / f"{name}.yaml")


def train(fleet, name, dim, mlp_dim):
    submit_drawn(fleet, name, dim, mlp_dim)
    fleet.wait_for(name, 120)
    return fleet.trials(name)[0]


def full_disk_of_a_run():
    with Fleet("run-disk") as fleet, small_disk(fleet, "2m") as disk:
        fleet.start_scheduler()
        fleet.start_worker("w", "--slots", 1, runs=disk / "runs")
        submit_drawn(fleet, "large", 256, 1024)
        fleet.until(lambda: worker(fleet).get("trouble"), "the worker says what is wrong")
        trial = train(fleet, "small", 16, 64)
        expect(trial["state"] == "TRIAL_STATE_COMPLETED", "a run whose checkpoint will never fit here leaves the room to a smaller one")
        trial = fleet.until(lambda: next((t for t in fleet.trials("large") if t["state"] == "TRIAL_STATE_HELD"), None), "the larger is held")
        expect("cannot write" in trial["reason"] and "No space left on device" in trial["reason"],
               f"and is held at last, with that reason: {trial['reason']}")


def little_memory():
    with Fleet("memory") as fleet:
        fleet.start_scheduler()
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (16 << 30, hard))  # the worker's, and its trainer's
        fleet.start_worker("w", "--slots", 1)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        trial = train(fleet, "huge", 65536, 1_000_000)
        expect(trial["state"] == "TRIAL_STATE_FAILED" and trial["reason"].startswith("not enough memory for the model and a batch of 20 images"),
               f"a run that needs more memory than there is fails with that reason: {trial['reason']}")


mounts = with_mounts()  # may begin this program again: first
newer_store()
taken_port()
little_memory()
data_folders()
if not mounts:
    skip("no tmpfs may be mounted here: full disks are left out")
start_on_a_full_disk()
full_disk()
full_disk_of_a_run()
