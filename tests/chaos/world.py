# SPDX-License-Identifier: Apache-2.0
"""The programs that chaos is made with: one scheduler, some workers behind a network of their own, disks, and a clock that can be set.
Whatever ends is started again, and what ends without having been made to is a finding."""
import collections
import contextlib
import os
import pathlib
import random
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import time

from fleet import BIN, say
from proxy import Network

HEARTBEAT_MS, LEASE_MS = 200, 1500
TRAINING = "t0"  # the worker that has a trainer
ANYWHERE, WHERE_IT_CAN_FAIL = ("kill", "stop", "delay"), ("kill", "stop", "delay", "error", "enospc")
POINTS = {  # who passes them -> name -> what may be done there
    "scheduler": {"scheduler.submit": WHERE_IT_CAN_FAIL, "scheduler.before-commit": WHERE_IT_CAN_FAIL, "scheduler.after-commit": ANYWHERE,
                  "scheduler.before-ack": ANYWHERE, "scheduler.after-ack": ANYWHERE, "scheduler.before-assign": ANYWHERE,
                  "scheduler.after-assign": ANYWHERE},
    "worker": {"worker.before-program": WHERE_IT_CAN_FAIL, "worker.after-program": ANYWHERE, "worker.before-spool-write": WHERE_IT_CAN_FAIL,
               "worker.after-spool-write": ANYWHERE, "worker.before-spool-delete": ANYWHERE, "worker.after-spool-delete": ANYWHERE,
               "worker.before-end": ANYWHERE, "worker.after-end": ANYWHERE},
    "trainer": {"file.before-rename": ("kill", "delay"), "file.after-rename": ("kill", "delay"), "trainer.before-end": ("kill", "delay")},
}


class Process:
    """A program that is to run all the time."""

    def __init__(self, name, argv, log):
        self.name, self.argv, self.log = name, argv, log
        self.popen = None
        self.expected = None  # why it ends, where somebody makes it
        self.stopped_until = None
        self.start_at = 0.0
        self.held = False  # somebody does something with what it uses: it is not started meanwhile
        self.points = ""

    def alive(self):
        return self.popen is not None and self.popen.poll() is None


class World:
    def __init__(self, home, workers, chance, disks, shim, trainer):
        self.home, self.chance, self.shim, self.trainer = home, chance, shim, trainer
        (home / "run").mkdir(mode=0o700)
        for folder in ("records", "sweeps", "logs"):
            (home / folder).mkdir()
        self.records = home / "records"
        self.store_disk, self.worker_disk = home / "store-disk", home / "worker-disk"
        self.mounted = []
        for disk, size in ((self.store_disk, "1g"), (self.worker_disk, "512m")):
            disk.mkdir()
            if disks:
                subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)], check=True)
                self.mounted.append(disk)
        self.store = self.store_disk / "results.db"
        self.socket = f"{home}/run/scheduler.sock"
        self.address = f"unix:{self.socket}"
        self.clock = home / "clock"
        self.clock.write_bytes(struct.pack("q", 0))
        self.network = Network()
        self.proxies = {}
        self.processes = {}
        self.findings = []
        self.killed = set()  # (trial, attempt): programs of trials
        self.counts = collections.Counter()
        self.note = None  # told of what happens at fail points: (kind, who, seconds that it lasts)
        self.calm = False
        self.busy = {}  # what is being done to what: one thing at a time
        self.set_up([f"w{number}" for number in range(workers)] + ([TRAINING] if trainer else []))

    def set_up(self, workers):
        self.add_scheduler()
        for name in workers:
            self.proxies[name] = self.network.proxy(self.socket)
            self.add_worker(name)

    def add_scheduler(self, *options):
        self.add("scheduler", "ablate-scheduler", "--store", self.store, "--listen", self.address, "--http-port", 0,
                 "--heartbeat-ms", HEARTBEAT_MS, "--lease-ms", LEASE_MS, *self.if_known("ablate-scheduler", "--quarantine-after", 0), *options)

    def add_worker(self, name, *options):
        training = name == TRAINING
        self.add(name, "ablate-worker", "--scheduler", self.proxies[name].address, "--home", self.worker_disk / name, "--name", name,
                 "--slots", 1 if training else 2, "--threads", 1, "--runs-root", self.worker_disk / "runs", "--grace-ms", 1000,
                 "--trainer", self.trainer if training else "/bin/false", *(() if training else ("--allow-commands",)), *options)

    def find(self, kind, text):
        """Something that must not be."""
        self.findings.append((kind, text))
        say(f"FINDING {kind}: {text}")

    def if_known(self, program, flag, value):
        known = subprocess.run([BIN / program, "--help"], capture_output=True, text=True).stdout
        return (flag, value) if flag in known else ()

    def workers(self):
        return [name for name in self.processes if name != "scheduler"]

    def add(self, name, program, *argv):
        self.processes[name] = Process(name, [str(BIN / program), *map(str, argv)], self.home / "logs" / f"{name}.log")

    def environment(self, process):
        environment = dict(os.environ, ABLATE_HOME=str(self.home), ABLATE_SCHEDULER=self.address, NO_COLOR="1", ABLATE_CHECK_QUEUE="1",
                           ABLATE_CHECKPOINT_SECONDS="1", CHAOS_CLOCK=str(self.clock))
        environment.pop("ABLATE_FAIL_POINTS", None)
        if self.shim:
            environment["LD_PRELOAD"] = str(self.shim)
        if process.points:
            environment["ABLATE_FAIL_POINTS"] = process.points
        return environment

    def draw_points(self, process):
        """What is to happen to the program that is started next, at a place that it passes, say, the twentieth time."""
        process.points = ""
        if self.calm or self.chance.random() < 0.3:
            return
        who = "scheduler" if process.name == "scheduler" else "trainer" if process.name == TRAINING else "worker"
        name = self.chance.choice(list(POINTS[who]))
        actions = POINTS[who][name]
        action = self.chance.choices(actions, [10, 2, 2, 1, 1][:len(actions)])[0]
        nth = 1 if name in ("scheduler.submit", "trainer.before-end") else int(1 + self.chance.expovariate(1 / (10 if who == "scheduler" else 3)))
        process.points = f"{name}={action}" + (f":{self.chance.choice((50, 500, 2500))}" if action == "delay" else "") + f"@{nth}"

    def start(self, process):
        self.draw_points(process)
        with open(process.log, "ab") as log:
            if process.points:
                log.write(f"-- started with {process.points}\n".encode())
                log.flush()
            process.log_from = log.tell()
            process.popen = subprocess.Popen(process.argv, env=self.environment(process), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        process.expected, process.stopped_until = None, None

    def said_since_start(self, process):
        with open(process.log, "rb") as log:
            log.seek(process.log_from)
            return log.read().decode(errors="replace")

    def is_up(self, process):
        return ("is ready" if process.name == "scheduler" else f"info worker {process.name} with ") in self.said_since_start(process)

    def look_after(self):
        """Starts what has ended, lets go on what has stopped itself. To be called all the time."""
        now = time.monotonic()
        for process in self.processes.values():
            if process.popen is None:
                if not process.held and now >= process.start_at:
                    self.start(process)
                continue
            code = process.popen.poll()
            if code is not None:
                self.has_ended(process, code)
            elif process.stopped_until is not None:
                if now >= process.stopped_until:
                    process.stopped_until = None
                    process.popen.send_signal(signal.SIGCONT)
            elif process.points and "=stop" in process.points and self.state_of(process.popen.pid) == "T":
                self.count_point(process)
                process.points = ""
                process.stopped_until = now + self.chance.uniform(0.1, 4)

    @staticmethod
    def state_of(pid):
        with contextlib.suppress(OSError):
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return ""

    def count_point(self, process):
        kind = f"fail point: {process.points.split('@')[0].split(':')[0].replace('=', ', ')}"
        self.counts[kind] += 1
        if self.note:
            self.note(kind, process.name, 0)

    def has_ended(self, process, code):
        said = self.said_since_start(process)
        process.popen = None
        process.start_at = time.monotonic() + (0 if self.calm else self.chance.choice((0, 0, 0.1, 0.5)))
        at_point = process.points and f"fail point {process.points.split('=')[0]}" in said
        if at_point:
            self.count_point(process)
        if code == -signal.SIGKILL and (process.expected == "kill" or at_point):
            return
        if code in (0, -signal.SIGTERM) and process.expected == "term":
            return
        if self.may_not_start(process, code, said.strip().splitlines()):
            process.start_at = time.monotonic() + 0.3
            return
        if code == 1 and at_point and "=error@" in process.points and self.said_nothing_but(said, "fail point"):
            return  # one of its first commits, at the start, could not be made: it says so and ends
        self.find("ended", f"{process.name} ended with {code} by itself; its last words: {said[-800:]}")
        process.start_at = time.monotonic() + 1

    @staticmethod
    def said_nothing_but(said, words):
        lines = [line for line in said.splitlines() if line and not line.startswith("---")]
        return bool(lines) and all(words in line for line in lines)

    def may_not_start(self, process, code, lines):
        """A start that is refused because of what is being done to its disk or its file, in one line, and with the right exit code."""
        last = lines[-1] if lines else ""
        return code == 3 and any(words in last for words in ("No space left", "disk is full", "in use by", "disk I/O error"))

    def kill(self, process):
        process.expected = "kill"
        process.popen.send_signal(signal.SIGKILL)

    def scheduler(self):
        return self.processes["scheduler"]

    def answers(self):
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(self.socket) == 0

    def owner(self):
        """The environment of who may do everything."""
        return dict(os.environ, ABLATE_HOME=str(self.home), ABLATE_SCHEDULER=self.address, NO_COLOR="1")

    def submitter(self):
        """The environment of somebody who may submit."""
        return self.owner()

    def ablate(self, *argv, timeout=60):
        return subprocess.run([str(BIN / "ablate"), *map(str, argv)], env=self.owner(), text=True, capture_output=True, timeout=timeout,
                              stdin=subprocess.DEVNULL)

    def reader(self):
        """A connection that only looks; None where there is no store yet."""
        with contextlib.suppress(sqlite3.Error):
            return sqlite3.connect(f"file:{self.store}?mode=ro", uri=True, timeout=1, check_same_thread=False)
        return None

    def set_clock(self, seconds):
        with open(self.clock, "r+b") as file:
            file.write(struct.pack("q", int(seconds * 1e9)))

    def programs(self):
        """The programs of trials that run just now: pid -> (trial, attempt)."""
        found = {}
        mark = str(self.worker_disk / "runs").encode()
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                if b"chaos/trial.py" not in (entry / "cmdline").read_bytes():
                    continue
                for variable in (entry / "environ").read_bytes().split(b"\0"):
                    if variable.startswith(b"ABLATE_RUN_DIR=") and mark in variable:
                        found[int(entry.name)] = tuple(int(part) for part in pathlib.Path(variable.decode()).parts[-2:])
        return found

    def all_alive(self):
        return all(process.alive() for process in self.processes.values())

    def restart_calmly(self):
        """From now on nothing happens to anybody any more: what has a fail point before it starts anew without."""
        self.calm = True
        for process in self.processes.values():
            process.held = False
            if process.alive():
                process.popen.send_signal(signal.SIGCONT)
                process.stopped_until = None
                if process.points:
                    self.kill(process)
        for proxy in self.proxies.values():
            proxy.set("pass")

    def end(self):
        for process in self.processes.values():
            process.held = True
            if process.alive():
                process.expected = "term"
                process.popen.terminate()
        for process in self.processes.values():
            if process.popen is None:
                continue
            try:
                code = process.popen.wait(60)
                if code != 0 and (code != -signal.SIGTERM or self.is_up(process)):  # until then signals end it at once
                    self.find("ended", f"{process.name} ended with {code} when asked to stop")
            except subprocess.TimeoutExpired:
                self.find("ended", f"{process.name} did not end within 60 s when asked to stop")
                process.popen.kill()
                process.popen.wait()

    def leave(self, keep):
        """Unmounts; keeps store, logs and records beside each other, or nothing."""
        for disk in self.mounted:
            if keep:
                for file in disk.glob("results.db*"):
                    (shutil.copytree if file.is_dir() else shutil.copy2)(file, self.home / file.name)
                for file in disk.glob("w*/spool/*"):
                    (self.home / "spools").mkdir(exist_ok=True)
                    shutil.copy2(file, self.home / "spools" / f"{file.parts[-3]}-{file.name}")
            subprocess.run(["umount", "-l", str(disk)], check=False)
        if not keep:
            shutil.rmtree(self.home, ignore_errors=True)


def chance_of(seed, what):
    """A generator of its own for each purpose: what one draws does not shift another."""
    return random.Random(f"{seed}/{what}")
