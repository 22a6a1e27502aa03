# SPDX-License-Identifier: Apache-2.0
"""Workers in trouble: a full disk, a command that prints without end, programs that outlive a killed worker, another file of weights.
No trial pays for it."""
import contextlib
import hashlib
import json
import os
import pathlib
import subprocess
import time

from fleet import BIN, Fleet, expect, say, skip, small_disk, with_mounts

SWEEP = """
ablate: 1
name: {name}
command: {{argv: [python3, {script}], params: {{i: 0}}, version: "1"}}
rows:
{rows}
seeds: [{seeds}]
retry: {{max: 0}}
table: {{columns: [{{name: a, metric: a}}]}}
"""


def submit(fleet, name, script, rows=1, seeds=1):
    program = fleet.home / f"{name}.py"
    program.write_text(script)
    text = SWEEP.format(name=name, script=json.dumps(str(program)), seeds=", ".join(map(str, range(seeds))),
                        rows="\n".join(f"  - {{id: r{i}, label: row {i}, set: {{params.i: {i}}}}}" for i in range(rows)))
    (fleet.home / f"{name}.yaml").write_text(text)
    fleet.ablate("submit", fleet.home / f"{name}.yaml")


def worker(fleet, name):
    return next(w for w in fleet.json("workers")["workers"] if w["name"] == name)


def fill(disk):
    with open(disk / "filler", "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"\0" * 4096)


QUICK = """
import time
for step in range(20):
    print('{"event":"metric","step":%d,"values":{"a":%d}}' % (step, step), flush=True)
    time.sleep(0.02)
print('{"event":"end","status":"completed"}')
"""


def fill_under_worker(fleet, disk, name, slots):
    """Starts a worker whose home is on the disk, and fills that once it has connected."""
    fleet.start(name, "ablate-worker", "--scheduler", fleet.address, "--home", disk / name, "--name", name, "--slots", slots,
                "--allow-commands", "--trainer", "/bin/false")
    fleet.until(lambda: fleet.json("workers").get("workers"), "the worker is there")
    fill(disk)


def full_worker():
    with Fleet("full-worker") as fleet, small_disk(fleet, "4m") as disk:
        fleet.start_scheduler()
        fill_under_worker(fleet, disk, "full", slots=2)
        submit(fleet, "ten", QUICK, rows=5, seeds=2)
        trouble = fleet.until(lambda: worker(fleet, "full").get("trouble"), "the full worker says so")
        expect("No space left on device" in trouble, f"a worker whose disk is full says so: {trouble}")
        waits = fleet.until(lambda: [t["reason"] for t in fleet.trials("ten") if "is unhealthy" in t["reason"]], "trials wait for it")
        expect(all("No space left on device" in reason for reason in waits), f"and so does each trial that waits for it: {waits[0]}")
        expect("unhealthy" in fleet.ablate("workers").stdout, "the list of workers shows it")
        say("a second worker, with room")
        fleet.start_worker("roomy", "--slots", 2, "--allow-commands", "--trainer", "/bin/false")
        fleet.wait_for("ten")
        trials = fleet.trials("ten")
        expect(all(t["state"] == "TRIAL_STATE_COMPLETED" and t["worker"] == "roomy" for t in trials),
               "the sweep completes without a retry on the other worker")
        (disk / "filler").unlink()
        fleet.until(lambda: not worker(fleet, "full").get("trouble"), "the worker is well again")
        fleet.stop("roomy")
        submit(fleet, "again", QUICK)
        fleet.wait_for("again")
        expect(fleet.trials("again")[0]["worker"] == "full", "with room again the worker takes trials by itself")


CHATTY = """
import sys, time
end = time.monotonic() + 6
block = b"y" * 79 + b"\\n"
while time.monotonic() < end:
    sys.stdout.buffer.write(block * 4096)
print()
print('{"event":"metric","step":1,"values":{"a":1}}')
print('{"event":"end","status":"completed"}', flush=True)
"""


def bytes_under(folder):
    total = 0
    for file in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            total += file.stat().st_size if file.is_file() else 0
    return total


def resident_mib(pid):
    fields = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in fields if line.startswith("VmRSS")).split()[1]) / 1024


def chatty_command():
    with Fleet("chatty") as fleet:
        fleet.start_scheduler()
        fleet.start_worker("w", "--slots", 2, "--allow-commands", "--trainer", "/bin/false", "--log-limit-mib", 4, "--spool-limit-mib", 8)
        submit(fleet, "flood", CHATTY)
        submit(fleet, "quiet", QUICK, rows=4)
        largest_spool = largest_memory = 0
        pid = fleet.processes["w"].pid

        def look():
            nonlocal largest_spool, largest_memory
            largest_spool = max(largest_spool, bytes_under(fleet.home / "w" / "spool"))
            largest_memory = max(largest_memory, resident_mib(pid))
            return all(fleet.json("show", s)["summary"]["state"] == "SWEEP_STATE_COMPLETED" for s in ("flood", "quiet"))

        fleet.until(look, "both sweeps are complete")
        expect(all(t["attempt"] == 1 for s in ("flood", "quiet") for t in fleet.trials(s)), "nobody lost a lease")
        expect(largest_spool < 10 << 20, f"the spool stayed small: {largest_spool / 2**20:.1f} MiB")
        expect(largest_memory < 300, f"and so did the worker's memory: {largest_memory:.0f} MiB")
        log = fleet.ablate("logs", fleet.trials("flood")[0]["run"]).stdout
        expect(len(log) < 4.1 * 2**20 and "of the log were left out here" in log and log.startswith("yyy"),
               f"the log is within its limit and says what it lacks: {len(log) / 2**20:.2f} MiB")


WRAPPED = """
import os, pathlib, subprocess, sys, time
here = pathlib.Path(__file__).parent
def alive(pid):
    try:
        return "Z" not in pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
earlier = [int(line) for line in (here / "pids").read_text().split()] if (here / "pids").exists() else []
beside = [pid for pid in earlier if alive(pid)]
if beside:
    print('{"event":"end","status":"failed","reason":"%s runs beside it","retryable":false}' % beside)
elif earlier:
    print('{"event":"metric","step":1,"values":{"a":1}}')
    print('{"event":"end","status":"completed"}')
else:  # the first attempt: programs behind a wrapper, and one that leaves its group
    subprocess.Popen(["sh", "-c", "sleep 1000 & echo $! >> pids.new; setsid sleep 1000 & echo $! >> pids.new; wait; true"], cwd=here)
    while not (here / "pids.new").exists() or len((here / "pids.new").read_text().split()) < 2:
        time.sleep(0.01)
    os.rename(here / "pids.new", here / "pids")
    print('{"event":"metric","step":1,"values":{"a":0}}', flush=True)
    time.sleep(1000)
"""


def outliving_programs():
    with Fleet("outliving") as fleet:
        fleet.start_scheduler()
        options = ("--slots", 1, "--allow-commands", "--trainer", "/bin/false")
        fleet.start_worker("w", *options)
        submit(fleet, "wrapped", WRAPPED)
        fleet.until(lambda: fleet.running("wrapped"), "the first attempt is under way")
        pids = [int(line) for line in (fleet.home / "pids").read_text().split()]
        fleet.kill("w")
        time.sleep(0.2)
        expect(all(pathlib.Path(f"/proc/{pid}").exists() for pid in pids), "what a program started outlives kill -9 of its worker")
        fleet.start_worker("w", *options)
        fleet.wait_for("wrapped", 60)
        trial = fleet.trials("wrapped")[0]
        expect(trial["state"] == "TRIAL_STATE_COMPLETED" and trial["attempt"] == 2,
               f"and is gone before the worker's next start begins the second attempt: {trial['state']} {trial.get('reason', '')}")


DAEMON = """
import os, pathlib, subprocess, time
here = pathlib.Path(__file__).parent
daemon = subprocess.Popen(["setsid", "-f", "sh", "-c", "echo $$ > daemon.new; mv daemon.new daemon; exec sleep 1000"], cwd=here)
while not (here / "daemon").exists():
    time.sleep(0.01)
print('{"event":"metric","step":1,"values":{"a":0}}', flush=True)
time.sleep(1000)
"""


def daemon_of_a_cancelled_run():
    with Fleet("daemon") as fleet:
        fleet.start_scheduler()
        fleet.start_worker("w", "--slots", 1, "--allow-commands", "--trainer", "/bin/false")
        submit(fleet, "daemon", DAEMON)
        fleet.until(lambda: fleet.running("daemon"), "it is under way")
        daemon = pathlib.Path("/proc") / (fleet.home / "daemon").read_text().strip()
        expect((daemon / "exe").exists(), "its daemon has left its session")
        fleet.ablate("cancel", "daemon")
        submit(fleet, "next", QUICK)
        fleet.wait_for("next")
        expect(not (daemon / "exe").exists(), "and is gone when the run's slot is given to another")


NEARLY_FULL = """
import json, os, pathlib
target = pathlib.Path(os.environ["ABLATE_RUN_DIR"]) / "checkpoint.bin"
try:
    target.write_bytes(bytes(1_900_000))
except OSError as error:
    target.unlink()
    print(json.dumps({"event": "end", "status": "failed", "reason": f"cannot write {target}: {error.strerror}", "fault": "disk", "needed_bytes": 1_900_000}))
else:
    target.unlink()
    print(json.dumps({"event": "metric", "step": 1, "values": {"a": 1}}))
    print(json.dumps({"event": "end", "status": "completed"}))
"""


def nearly_full_worker():
    with Fleet("nearly-full") as fleet, small_disk(fleet, "7m") as disk:
        fleet.start_scheduler()
        fill_under_worker(fleet, disk, "w", slots=1)
        with open(disk / "filler", "r+b") as file:
            file.truncate(file.seek(0, os.SEEK_END) - 1_500_000)  # enough for the worker, too little for a checkpoint
        submit(fleet, "large", NEARLY_FULL)
        trouble = fleet.until(lambda: worker(fleet, "w").get("trouble"), "the worker says what it lacks")
        expect("No space left on device" in trouble or "are needed" in trouble, f"a disk that is nearly full is the worker's trouble: {trouble}")
        (disk / "filler").unlink()
        fleet.wait_for("large")
        trial = fleet.trials("large")[0]
        expect(trial["state"] == "TRIAL_STATE_COMPLETED", f"and the trial, which has no retry, completes with room: {trial.get('reason', '')}")


TINY = dict(model=dict(family="simple-vit", dim=16, depth=1, heads=2, dim_head=8, patch=8),
            data=dict(name="shapes", train_images=60, val_images=20), recipe=dict(use="demo", epochs=1, batch=20))


def submit_tuning(fleet, name, seed, **recipe):
    base = dict(TINY, recipe=dict(TINY["recipe"], **recipe))
    sweep = dict(ablate=1, name=name, base=base, rows=[dict(id="r", label="row")], seeds=[seed], retry=dict(max=0),
                 table=dict(columns=[dict(name="acc", metric="val/top1")]))
    (fleet.home / f"{name}.yaml").write_text(json.dumps(sweep))
    fleet.ablate("submit", fleet.home / f"{name}.yaml")


def weights_of_another_digest():
    trainer = BIN / "ablate-trainer"
    with Fleet("weights") as fleet:
        (fleet.home / "trial.json").write_text(json.dumps(dict(TINY, seed=0)))
        subprocess.run([trainer, "train", "--config", fleet.home / "trial.json", "--run-dir", fleet.home / "first"], check=True,
                       stdout=subprocess.DEVNULL)
        right, wrong = fleet.home / "first" / "best.safetensors", fleet.home / "wrong.safetensors"
        wrong.write_text("half a copy")
        digest = hashlib.sha256(right.read_bytes()).hexdigest()

        def start_worker(name, file):
            fleet.start_worker(name, "--slots", 1, "--trainer", trainer, "--weights", f"start={file}")
            fleet.until(lambda: any(w["name"] == name for w in fleet.json("workers").get("workers", [])), "it is connected")

        def expect_it_goes_elsewhere(sweep, bad, good):
            fleet.until(lambda: "SHA-256" in worker(fleet, bad).get("trouble", ""), "the worker says what its file is")
            reason = fleet.until(lambda: [t["reason"] for t in fleet.trials(sweep) if f"worker {bad}" in t["reason"]], "the trial waits")[0]
            expect(f"expected {digest}" in reason, f"a trial waits for the file that it wants: {reason}")
            start_worker(good, right)
            fleet.wait_for(sweep)
            trial = fleet.trials(sweep)[0]
            expect(trial["state"] == "TRIAL_STATE_COMPLETED" and trial["worker"] == good,
                   f"and completes on a worker that has it, without a retry: {trial['state']} {trial.get('reason', '')}")

        fleet.start_scheduler()
        start_worker("bad", wrong)
        submit_tuning(fleet, "said", 0, start_weights="start", start_sha256=digest)  # the recipe says which file
        expect_it_goes_elsewhere("said", "bad", "good")
        fleet.stop("bad")
        submit_tuning(fleet, "named", 0, start_weights="start")  # its first run does
        fleet.wait_for("named")
        fleet.stop("good")
        start_worker("worse", wrong)
        submit_tuning(fleet, "again", 1, start_weights="start")
        expect_it_goes_elsewhere("again", "worse", "better")


mounts = with_mounts()  # may begin this program again: first
chatty_command()
outliving_programs()
daemon_of_a_cancelled_run()
if (BIN / "ablate-trainer").exists():
    weights_of_another_digest()
else:
    say("no ablate-trainer was built: weights of another digest are left out")
if not mounts:
    skip("no tmpfs may be mounted here: full disks are left out")
full_worker()
nearly_full_worker()
