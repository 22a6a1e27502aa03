# SPDX-License-Identifier: Apache-2.0
"""Workers in trouble: a full disk, a command that prints without end, programs that outlive a killed worker. No trial pays for it."""
import contextlib
import json
import os
import pathlib
import subprocess
import time

from fleet import Fleet, expect, say

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


@contextlib.contextmanager
def small_disk(fleet, size):
    """A folder on a file system of its own; nothing where none may be mounted."""
    disk = fleet.home / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)], capture_output=True).returncode != 0:
        say("no tmpfs may be mounted here: the full disk is left out")
        yield None
        return
    try:
        yield disk
    finally:
        for name in list(fleet.processes):
            fleet.stop(name)
        subprocess.run(["umount", str(disk)], check=True)


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


def full_worker():
    with Fleet("full-worker") as fleet, small_disk(fleet, "4m") as disk:
        if not disk:
            return
        fleet.start_scheduler()
        fleet.start("full", "ablate-worker", "--scheduler", fleet.address, "--home", disk / "full", "--name", "full", "--slots", 2,
                    "--allow-commands", "--trainer", "/bin/false")
        fleet.until(lambda: fleet.json("workers").get("workers"), "the worker is there")
        fill(disk)
        submit(fleet, "ten", QUICK, rows=5, seeds=2)
        trouble = fleet.until(lambda: worker(fleet, "full").get("trouble"), "the full worker says so")
        expect("No space left on device" in trouble, f"a worker whose disk is full says so: {trouble}")
        waits = fleet.until(lambda: [t["reason"] for t in fleet.trials("ten") if "is in trouble" in t["reason"]], "trials wait for it")
        expect(all("No space left on device" in reason for reason in waits), f"and so does each trial that waits for it: {waits[0]}")
        expect("in trouble" in fleet.ablate("workers").stdout, "the list of workers shows it")
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


full_worker()
chatty_command()
outliving_programs()
