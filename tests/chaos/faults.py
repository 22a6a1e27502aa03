# SPDX-License-Identifier: Apache-2.0
"""What is done to the programs, their network, their disks, their file and their clock. Drawn from one generator; what is done is written
down, and when it was over."""
import contextlib
import os
import signal
import sqlite3
import subprocess
import time

from admission import Admission
from secured import SecuredWorld
from world import LEASE_MS

LEASE = LEASE_MS / 1000


class Faults:
    def __init__(self, world, chance, note, stranger):
        self.world, self.chance, self.note, self.stranger = world, chance, note, stranger
        self.later = []  # (when, what is then done)
        self.kills = 0
        self.strangers = []
        kinds = [(24, self.kill_worker), (16, self.kill_program), (8, self.kill_scheduler), (5, self.stop_worker), (2, self.stop_program),
                 (2, self.stop_scheduler), (2, self.end_worker), (1, self.end_scheduler), (6, self.cut), (5, self.bad_network),
                 (3, self.set_clock), (2, self.lock_store), (1, self.newer_store), (1, self.come_as_stranger)]
        if world.mounted:
            kinds += [(2, self.fill_store_disk), (2, self.fill_worker_disk)]
        self.weights, self.kinds = [], []
        self.add_kinds(kinds)
        self.admission = Admission(world, self, chance) if isinstance(world, SecuredWorld) else None

    def add_kinds(self, kinds):
        """(how often in comparison, what)"""
        for weight, kind in kinds:
            self.weights.append(weight)
            self.kinds.append(kind)

    # --- when ---

    def one(self):
        """Does one thing to something that is well."""
        for _ in range(20):
            if self.chance.choices(self.kinds, self.weights)[0]():
                return

    def work(self):
        if self.admission:
            self.admission.work()
        now = time.monotonic()
        due = [entry for entry in self.later if entry[0] <= now]
        self.later = [entry for entry in self.later if entry[0] > now]
        for _, what in sorted(due, key=lambda entry: entry[0]):
            what()
        for popen in list(self.strangers):
            if popen.poll() is not None:
                self.strangers.remove(popen)
                self.hear_stranger(popen)

    def after(self, seconds, what):
        self.later.append((time.monotonic() + seconds, what))

    def end_all(self, meanwhile):
        """`meanwhile` is called while something takes its time."""
        while self.later:
            self.later.sort(key=lambda entry: entry[0])
            self.later.pop(0)[1]()
        for popen in self.strangers:
            popen.kill()
            popen.wait()
        if self.admission:
            self.admission.finish(meanwhile)

    def begin(self, kind, target, recovers_from=None):
        """`recovers_from`: seconds from now at which it is over, and the recovery begins; `target`: the worker or "scheduler", where it
        concerns one."""
        self.world.counts[kind] += 1
        self.note(kind, target, recovers_from or 0.0)
        return True

    def well(self, name):
        process = self.world.processes[name]
        return process.alive() and not process.held and process.stopped_until is None and process.expected is None and name not in self.world.busy

    def a_worker(self):
        well = [name for name in self.world.workers() if self.well(name)]
        return self.world.processes[self.chance.choice(well)] if well else None

    # --- programs ---

    def kill_worker(self):
        worker = self.a_worker()
        if not worker:
            return False
        self.world.kill(worker)
        self.kills += 1
        return self.begin("kill -9 of a worker", worker.name)

    def kill_scheduler(self):
        if not self.well("scheduler"):
            return False
        self.world.kill(self.world.scheduler())
        self.kills += 1
        return self.begin("kill -9 of the scheduler", "scheduler")

    def a_program(self):
        """(pid, (trial, attempt))"""
        found = sorted(self.world.programs().items())
        return self.chance.choice(found) if found else (None, None)

    def kill_program(self):
        pid, run = self.a_program()
        if not pid:
            return False
        self.world.killed.add(run)  # first: it may end at once
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self.kills += 1
            return self.begin("kill -9 of a trial's program", None)
        return False

    def stop_program(self):
        pid, _ = self.a_program()
        if not pid:
            return False

        def go_on():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            self.after(self.chance.uniform(0.1, 2), go_on)
            return self.begin("SIGSTOP of a trial's program", None)
        return False

    def stop(self, process, seconds, kind):
        process.popen.send_signal(signal.SIGSTOP)
        process.stopped_until = time.monotonic() + seconds
        return self.begin(kind, process.name, seconds)

    def stop_worker(self):
        worker = self.a_worker()
        if not worker:
            return False
        if self.chance.random() < 0.5:
            return self.stop(worker, self.chance.uniform(0.05, 0.7 * LEASE), "SIGSTOP of a worker, shorter than a lease")
        return self.stop(worker, self.chance.uniform(1.2, 3) * LEASE, "SIGSTOP of a worker, longer than a lease")

    def stop_scheduler(self):
        if not self.well("scheduler"):
            return False
        return self.stop(self.world.scheduler(), self.chance.uniform(0.1, 3 * LEASE), "SIGSTOP of the scheduler")

    def end_program(self, process, kind):
        process.expected = "term"
        process.popen.terminate()
        return self.begin(kind, process.name)

    def end_worker(self):
        worker = self.a_worker()
        return self.end_program(worker, "SIGTERM of a worker") if worker else False

    def end_scheduler(self):
        return self.end_program(self.world.scheduler(), "SIGTERM of the scheduler") if self.well("scheduler") else False

    # --- the network ---

    def a_proxy(self):
        free = [name for name in self.world.proxies if ("network", name) not in self.world.busy]
        return self.chance.choice(free) if free else None

    def cut(self):
        name = self.a_proxy()
        if not name:
            return False
        proxy, concerned = self.world.proxies[name], name if name in self.world.processes else None
        how = self.chance.random() if proxy.tls else 0
        if how < 0.5:
            proxy.cut()
            return self.begin("connection cut", concerned)
        if how < 0.85:
            proxy.cut_in_record()
            return self.begin("connection cut in the middle of a record", concerned)
        proxy.turn_a_bit()
        return self.begin("a bit turned on its way", concerned)

    def bad_network(self):
        name = self.a_proxy()
        if not name:
            return False
        mode = self.chance.choice(self.world.proxies[name].MODES[1:])
        seconds = self.chance.uniform(0.2, 3 * LEASE)
        self.world.busy["network", name] = mode
        self.world.proxies[name].set(mode, self.chance.uniform(0.02, 0.4))
        if mode == "refuse":
            self.world.proxies[name].cut()

        def mend():
            self.world.proxies[name].set("pass")
            del self.world.busy["network", name]

        self.after(seconds, mend)
        return self.begin(f"network: {mode}", name if name in self.world.processes else None, seconds)

    # --- disks, file, clock ---

    def fill(self, disk, kind):
        if disk in self.world.busy:
            return False
        self.world.busy[disk] = kind
        filler = disk / "filler"
        block = b"\0" * (1 << 20)
        with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
            for size in (1 << 20, 4096):
                with contextlib.suppress(OSError):
                    while file.write(block[:size]):
                        pass

        def empty():
            filler.unlink()
            del self.world.busy[disk]

        seconds = self.chance.uniform(0.3, 2 * LEASE)
        self.after(seconds, empty)
        return self.begin(kind, "scheduler" if disk == self.world.store_disk else None, seconds)

    def fill_store_disk(self):
        return self.fill(self.world.store_disk, "full disk under the results file")

    def fill_worker_disk(self):
        return self.fill(self.world.worker_disk, "full disk under the workers")

    def set_clock(self):
        far = (0, -3600, 3600, -86400, 86400, 10 * 365 * 86400, -2, 2)
        if self.admission:  # certificates and tokens have their time: they begin an hour before they were made, and last for a month
            far = (0, -3000, 3600, 86400, 20 * 86400, -2, 2)
        seconds = self.chance.choice((*far, self.chance.uniform(-100, 100)))
        self.world.set_clock(seconds)
        return self.begin("wall clock set", None)

    def lock_store(self):
        if "store" in self.world.busy or not self.world.store.exists():
            return False
        try:
            other = sqlite3.connect(self.world.store, timeout=5, isolation_level=None, check_same_thread=False)
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.Error:
            return False
        self.world.busy["store"] = "locked"

        def let_go():
            with contextlib.suppress(sqlite3.Error):
                other.execute("ROLLBACK")
            other.close()
            del self.world.busy["store"]

        seconds = self.chance.choices((0.2, 1, 3, 12), (4, 4, 2, 1))[0]  # a connection of ours waits for 10 s
        self.after(seconds, let_go)
        return self.begin("results file locked by another program", "scheduler", seconds)

    def newer_store(self):
        """The scheduler is killed, and started on a file that a newer release has written: it says so in a line, and changes nothing."""
        if not self.well("scheduler") or any(what in self.world.busy for what in ("store", "certificate", self.world.store_disk)):
            return False
        scheduler = self.world.scheduler()
        scheduler.held = True
        self.world.kill(scheduler)
        self.kills += 1
        scheduler.popen.wait()
        self.world.look_after()
        try:
            version = self.add_to_version(1)
            done = subprocess.run(scheduler.argv, env=self.world.environment(scheduler), text=True, capture_output=True, timeout=60,
                                  stdin=subprocess.DEVNULL)
            lines = done.stderr.strip().splitlines()
            if done.returncode != 2 or len(lines) != 1 or "newer" not in lines[0]:
                self.world.find("version", f"a results file of schema {version}: exit code {done.returncode}, {done.stderr[-400:]}")
            if self.add_to_version(-1) != version - 1:
                self.world.find("version", "the scheduler changed a results file of a newer version")
        finally:
            scheduler.held = False
        return self.begin("results file of a newer version", "scheduler")

    def add_to_version(self, step):
        db = sqlite3.connect(self.world.store, timeout=20)
        try:
            version = db.execute("PRAGMA user_version").fetchone()[0] + step
            db.execute(f"PRAGMA user_version = {version}")
            db.commit()
            return version
        finally:
            db.close()

    def come_as_stranger(self):
        if not self.stranger or not self.well("scheduler"):
            return False
        self.strangers.append(subprocess.Popen([self.stranger, self.world.address], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
        return self.begin("worker of another protocol", None)

    def hear_stranger(self, popen):
        said = popen.stdout.read()
        refused = "code 9:" in said and "protocol" in said
        nobody = any(f"code {code}:" in said for code in (1, 4, 14))  # the scheduler was being killed, stopped, …
        if not refused and not nobody:
            self.world.find("version", f"a worker of another protocol was told: {said.strip()}")
