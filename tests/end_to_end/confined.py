# SPDX-License-Identifier: Apache-2.0
"""A hostile `command:` on a worker with --run-as: each attack of docs/security.md ("What a command may do") through the real
programs, with its answer."""
import atexit
import contextlib
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile

from fleet import Fleet, expect, say

USER = "nobody"
ATTACKS = r"""
import ctypes, json, os, pathlib, resource, subprocess, sys, time
place, runs, home, setuid = map(pathlib.Path, sys.argv[1:5])
run = pathlib.Path(os.environ["ABLATE_RUN_DIR"])

def attempt(name, attack):
    try:
        answer = attack()
    except Exception as error:
        answer = type(error).__name__
    print(f"{name}: {answer}", flush=True)

def trace(process):
    libc = ctypes.CDLL(None, use_errno=True)
    return ctypes.get_errno() if libc.ptrace(16, process, 0, 0) < 0 else 0  # PTRACE_ATTACH

def daemon():
    # its own session, no environment, another parent
    subprocess.run(["env", "-i", "setsid", "--fork", "sh", "-c", f"echo $$ > {run}/daemon; exec sleep 10000"], check=True)
    while not (run / "daemon").exists() or not (run / "daemon").read_text():
        time.sleep(0.01)
    return (run / "daemon").read_text().strip()

attempt("user", os.getuid)
attempt("setuid program", lambda: subprocess.run([setuid, "-u"], capture_output=True, text=True).stdout.strip())
attempt("worker's home", lambda: os.listdir(home))
attempt("worker's spool", lambda: os.listdir(home / "spool"))
attempt("worker's memory", lambda: open(f"/proc/{os.getppid()}/mem", "rb").read(1))
attempt("worker's environment", lambda: open(f"/proc/{os.getppid()}/environ", "rb").read())
attempt("worker's open files", lambda: os.listdir(f"/proc/{os.getppid()}/fd"))
attempt("trace the worker", lambda: os.strerror(trace(os.getppid())))
attempt("secrets in the worker's arguments", lambda: "abl_" in open(f"/proc/{os.getppid()}/cmdline").read())
attempt("signal to the worker", lambda: os.kill(os.getppid(), 9))
attempt("more files", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (65, 65)))
attempt("other runs", lambda: os.listdir(runs))
attempt("read another run", lambda: (runs / "1/1/kept").read_text())
attempt("write another run", lambda: (runs / "1/1/kept").write_text("broken"))
attempt("leave its folder", lambda: (run.parent / "mine").write_text("x"))
attempt("secrets", lambda: [name for name in os.environ if "SECRET" in name or "AUTH" in name])
attempt("core files", lambda: resource.getrlimit(resource.RLIMIT_CORE))
attempt("daemon", daemon)
if os.environ["ABLATE_RESUME"]:
    print("goes on from", os.environ["ABLATE_RESUME"])
    sys.exit(0)
(run / "linked").symlink_to(place / "secret")
os.mkfifo(run / "pipe")
for step, path in enumerate(["linked", "pipe", str(place / "secret")], 1):
    print(json.dumps({"event": "checkpoint", "step": step, "path": path}), flush=True)
sys.exit(1)
"""

DAEMON = r"""
import os, subprocess, time
subprocess.run(["env", "-i", "setsid", "--fork", "sh", "-c", "echo $$ > daemon; exec sleep 10000"], check=True)
while not (os.path.exists("daemon") and open("daemon").read()):
    time.sleep(0.01)
print("daemon", open("daemon").read())
"""


def start(fleet, name, argv, **more):
    file = fleet.home / f"{name}.yaml"
    file.write_text(json.dumps({"ablate": 1, "name": name, "command": {"argv": argv, "folder": "{run_dir}"}, "rows": [{"id": "a"}],
                                "table": {"columns": [{"name": "loss", "metric": "loss"}]}, **more}))
    fleet.ablate("submit", file)


def submit(fleet, name, argv, **more):
    start(fleet, name, argv, **more)
    fleet.wait_for(name)
    return fleet.trials(name)[0]


def logs(fleet, trial):
    with sqlite3.connect(f"file:{fleet.store}?mode=ro", uri=True) as store:
        attempts = [run for run, in store.execute("SELECT id FROM run WHERE trial_id = ? ORDER BY attempt", (trial["id"],))]
    return [fleet.ablate("logs", run).stdout for run in attempts]


def refusals(fleet):
    say("a worker that cannot keep them in says so and does not start")
    for options, why in ((("--run-as", "root"), "root may do everything"), (("--run-as", "no-such-user"), "no such user"),
                         (("--run-as", USER, "--runs-root", fleet.home / "bare/runs"), "--runs-root outside of"),
                         (("--pass-env", "HOME"), "--pass-env needs --run-as"),
                         (("--run-groups", fleet.home), f"--run-groups: there is no {fleet.home}/cgroup.controllers; expected"),
                         (("--pass-env", "A=secret"), "expected the name of a variable")):
        done = subprocess.run([os.environ["ABLATE_BIN"] + "/ablate-worker", "--allow-commands", "--trainer", "/bin/false", "--home",
                               str(fleet.home / "bare"), *map(str, options)], capture_output=True, text=True, env=fleet.environment)
        expect(done.returncode == 2 and why in done.stderr and "secret" not in done.stderr, f"{options[0]} {options[1]}: {why}")
    expect(not (fleet.home / "bare").exists(), "and leaves nothing behind")


def unified_tree():
    """Where cgroup v2 is mounted; None: nowhere."""
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        if line.split()[2] == "cgroup2":
            return pathlib.Path(line.split()[1])
    return None


def bounds(fleet, place, own, options):
    """Flags for what this machine can bound in groups; where it cannot, a worker that is told to does not start."""
    if {"memory", "pids"} <= set((own / "cgroup.controllers").read_text().split()):
        return "--run-memory", 64, "--run-processes", 40
    say("bounds of memory and processes are not tried: this tree of cgroup v2 has no such controllers")
    done = subprocess.run([os.environ["ABLATE_BIN"] + "/ablate-worker", "--home", str(fleet.home / "b"), "--runs-root", str(place / "b"),
                           "--run-memory", "64", *map(str, options)], capture_output=True, text=True, env=fleet.environment)
    expect(done.returncode == 2 and f"--run-memory: {own} has no such controller; expected" in done.stderr, done.stderr.strip().splitlines()[-1])
    expect(not (fleet.home / "b").exists(), "and leaves nothing behind")
    return ()


def groups(fleet, place):
    """A hidden daemon goes with its run while another run of the same user goes on."""
    tree = unified_tree()
    if tree is None or not os.access(tree, os.W_OK):
        return say("not tried with groups: no cgroup v2 here that can be written")
    own = tree / f"ablate-test-{os.getpid()}"
    own.mkdir()
    try:
        options = ("--slots", 2, "--allow-commands", "--trainer", "/bin/false", "--run-as", USER, "--run-groups", own)
        bounded = bounds(fleet, place, own, options)
        fleet.start_worker("g", *options, *bounded, runs=place / "grouped")
        start(fleet, "long", ["sh", "-c", "cat /proc/self/cgroup; echo > up; exec sleep 1000"])
        fleet.until(lambda: list((place / "grouped").glob("*/1/up")), "the long run is up")
        trial = submit(fleet, "hiding", ["/usr/bin/python3", "-c", DAEMON])
        hidden = int(logs(fleet, trial)[0].split("daemon ")[1].split()[0])
        fleet.until(lambda: not pathlib.Path(f"/proc/{hidden}").exists(), "its daemon is dead while the other run goes on")
        expect(fleet.trials("long")[0]["state"] == "TRIAL_STATE_RUNNING", "the other run goes on")
        if bounded:
            for name, argv, why in (("eats", ["/usr/bin/python3", "-c", "x = bytearray(500 << 20)"], "64 MiB of memory here (--run-memory)"),
                                    ("bomb-in-a-group", ["sh", "-c", "for i in $(seq 200); do sleep 1000 & done; wait"], "a run may have 40 processes")):
                trial = submit(fleet, name, argv, retry={"max": 0, "on": {"resources": 0}})
                expect(why in trial["reason"] and trial["failure"] == "FAILURE_CLASS_RESOURCES", f"{name}: {trial['reason']}")
            expect(fleet.trials("long")[0]["state"] == "TRIAL_STATE_RUNNING", "a run beside goes on, and so does the worker")
        fleet.ablate("cancel", "long")
        fleet.until(lambda: not [d for d in own.iterdir() if d.name.startswith("run-")], "no group of a run is left")
        fleet.stop("g")
        expect((own / "worker/cgroup.procs").read_text() == "", "nothing is left in the worker's own")
    finally:
        if "g" in fleet.processes:
            fleet.stop("g")
        for folder in [*own.glob("*/"), own]:
            folder.rmdir()


def few_capabilities(fleet, place):
    """As deploy/ablate-worker-commands.conf has it, with NoNewPrivileges."""
    config = pathlib.Path(os.environ["ABLATE_SOURCE"], "deploy/ablate-worker-commands.conf").read_text()
    names = re.search(r"^CapabilityBoundingSet=(.*)$", config, re.M)[1].split()
    few = ",".join(["-all"] + ["+" + name.removeprefix("CAP_").lower() for name in names])
    runs, options = place / "few", ("--slots", 1, "--allow-commands", "--trainer", "/bin/false", "--run-as", USER, "--runs-root", place / "few")
    log = open(fleet.home / "few.log", "ab")
    fleet.processes["few"] = subprocess.Popen(
        ["setpriv", "--bounding-set", few, "--no-new-privs", os.environ["ABLATE_BIN"] + "/ablate-worker", "--scheduler", fleet.address, "--home",
         str(fleet.home / "few"), "--name", "few", *map(str, options)], env=fleet.environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    trial = submit(fleet, "few", ["/usr/bin/python3", "-c", "import os; print('user', os.getuid())\n" + DAEMON])
    said = logs(fleet, trial)[0]
    expect(f"user {pwd.getpwnam(USER).pw_uid}\n" in said, "a worker of few capabilities and no new privileges runs it as that user")
    expect(not pathlib.Path("/proc", said.split("daemon ")[1].split()[0]).exists(), "and ends what it left")
    expect((runs / f"{trial['id']}/1").stat().st_uid == 0, "and takes its folder back")
    fleet.stop("few")


def main():
    if os.geteuid() != 0:
        say("skipped: only root can start programs as another user")
        sys.exit(77)
    place = pathlib.Path(tempfile.mkdtemp(prefix="ablate-confined-"))
    place.chmod(0o711)
    try:
        with Fleet("confined") as fleet:
            if sys.argv[1:] == ["groups"]:
                fleet.start_scheduler()
                return groups(fleet, place)
            attack(fleet, place)
            groups(fleet, place)
            few_capabilities(fleet, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def setuid_program(fleet, place, user):
    """`id`, as root for whoever runs it without a worker; None where this machine lets no program be that, so that nothing is shown."""
    for folder in (place, pathlib.Path("/var/tmp"), pathlib.Path("/dev/shm"), fleet.home):
        program = folder / f"ablate-setuid-{os.getpid()}"
        atexit.register(program.unlink, missing_ok=True)  # whatever becomes of the test
        with contextlib.suppress(OSError):
            shutil.copy(shutil.which("id"), program)
            program.chmod(0o4755)
            if subprocess.run([program, "-u"], user=user, capture_output=True, text=True).stdout.strip() == "0":
                say(f"ok: elsewhere {program} makes root of who runs it")
                return program
        program.unlink(missing_ok=True)
    return say("NOT TRIED: the setuid attack: no folder of this machine lets a program gain anything")


def attack(fleet, place):
    runs, home = place / "runs", fleet.home / "w"
    (place / "attacks.py").write_text(ATTACKS)
    (place / "secret").write_text("for root alone")
    (place / "secret").chmod(0o600)
    user = pwd.getpwnam(USER).pw_uid
    setuid = setuid_program(fleet, place, user)

    refusals(fleet)
    fleet.start_scheduler()
    fleet.environment.update(AWS_SECRET_ACCESS_KEY="hidden", SSH_AUTH_SOCK="/hidden")
    options = ("--slots", 1, "--allow-commands", "--trainer", "/bin/false", "--run-as", USER, "--run-processes", 60, "--run-file-size", 1,
               "--run-open-files", 64)
    fleet.start_worker("w", *options, runs=runs)

    submit(fleet, "victim", ["sh", "-c", "echo whole > kept"])
    expect((runs / "1/1/kept").read_text() == "whole\n", "a run writes its folder")
    # the `python3` that the worker's user has may lie where another cannot go
    hostile = submit(fleet, "hostile", ["/usr/bin/python3", str(place / "attacks.py"), str(place), str(runs), str(home), str(setuid)],
                     retry={"max": 1})
    first, second = logs(fleet, hostile)
    print(first + second)
    for name, answer in (("user", user), *([("setuid program", user)] if setuid else []), ("worker's home", "PermissionError"), ("worker's spool", "PermissionError"),
                         ("worker's memory", "PermissionError"), ("worker's environment", "PermissionError"),
                         ("worker's open files", "PermissionError"), ("trace the worker", "Operation not permitted"),
                         ("secrets in the worker's arguments", "False"), ("signal to the worker", "PermissionError"),
                         ("more files", "ValueError"), ("other runs", "PermissionError"),
                         ("read another run", "PermissionError"), ("write another run", "PermissionError"),
                         ("leave its folder", "PermissionError"), ("secrets", "[]"), ("core files", "(0, 0)")):
        expect(f"{name}: {answer}\n" in first, f"{name}: {answer}")
    daemons = [int(line.removeprefix("daemon: ")) for log in (first, second) for line in log.splitlines() if line.startswith("daemon: ")]
    expect(len(daemons) == 2 and not any(pathlib.Path(f"/proc/{daemon}").exists() for daemon in daemons), "its daemons ended with it")
    expect((runs / "1/1/kept").read_text() == "whole\n", "the other run's file is whole")
    expect(second.count("lies outside of") == 2 and "is gone" in second and "goes on from" not in second,
           "checkpoints that are links, pipes or elsewhere are not taken")

    for name, script, why in (("bomb", "for i in $(seq 200); do sleep 1000 & done; wait", "all runs together may have 60 processes and threads"),
                              ("large", "head -c 5000000 /dev/zero > large", "files of up to 1 MiB here"),
                              ("many", "exec /usr/bin/python3 -c 'f = [open(\"/dev/null\") for _ in range(100)]'", "may have 64 files open here")):
        trial = submit(fleet, name, ["sh", "-c", script], retry={"max": 0, "on": {"resources": 0}})
        expect(why in trial["reason"] and trial["failure"] == "FAILURE_CLASS_RESOURCES", f"{name}: {trial['reason']}")

    say("a run that its worker's death cut off is closed at the next start")
    start(fleet, "cut", ["sh", "-c", "echo $$ > self; exec sleep 1000"])
    cut = fleet.trials("cut")[0]["id"]
    self = fleet.until(lambda: next((f for f in runs.glob(f"{cut}/1/self") if f.read_text()), None), "it runs")
    process = pathlib.Path("/proc", self.read_text().strip())
    fleet.processes["w"].send_signal(signal.SIGKILL)
    fleet.processes.pop("w").wait()
    fleet.until(lambda: not process.exists(), "its program dies with its worker")
    fleet.ablate("cancel", "cut")
    fleet.start_worker("w", *options, runs=runs)
    fleet.until(lambda: self.parent.stat().st_uid == 0 and self.parent.stat().st_mode & 0o777 == 0o700, "its folder is the worker's alone")
    fleet.stop("w")


if __name__ == "__main__":
    main()
