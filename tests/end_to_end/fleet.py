# SPDX-License-Identifier: Apache-2.0
"""Starts the real programs in a folder of their own and asks them through the command line, as a user would."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

BIN = pathlib.Path(os.environ["ABLATE_BIN"])
SOURCE = pathlib.Path(os.environ["ABLATE_SOURCE"])
SKIP = 77
BEGIN = time.monotonic()


def say(text):
    print(f"-- {time.monotonic() - BEGIN:5.1f} s  {text}", flush=True)


def skip(why):
    print(f"SKIPPED: {why}", flush=True)
    sys.exit(SKIP)


def test_data():
    """The folder with real images, or a skip."""
    folder = pathlib.Path(os.environ.get("ABLATE_TEST_DATA", SOURCE.parent / "shared" / "data"))
    if not folder.is_dir():
        skip(f"no test data in {folder}; set ABLATE_TEST_DATA to a folder with cifar10-jpeg.tar.gz")
    return folder


def host_names():
    """How a program gets a host name of its own, `unshare …`; or a skip."""
    command = ["unshare", "--uts"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--uts"]
    if subprocess.run([*command, "hostname", "another"], capture_output=True).returncode != 0:
        skip("this machine allows no host names of one's own (unshare --uts)")
    return command


def with_mounts():
    """Whether this program may mount: as root, or as root of a user namespace of its own, in which it then begins again."""
    if os.geteuid() == 0:
        with tempfile.TemporaryDirectory() as folder:
            if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True).returncode != 0:
                return False
            return subprocess.run(["umount", folder]).returncode == 0
    own = ["unshare", "--map-root-user", "--mount"]
    try:
        if subprocess.run([*own, "mount", "-t", "tmpfs", "tmpfs", tempfile.gettempdir()], capture_output=True).returncode != 0:
            return False
    except FileNotFoundError:
        return False
    sys.stdout.flush()
    os.execvp(own[0], [*own, sys.executable, *sys.argv])


@contextlib.contextmanager
def small_disk(fleet, size):
    """A folder on a file system of its own. Ask `with_mounts` first."""
    disk = fleet.home / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)], check=True)
    try:
        yield disk
    finally:
        for name in list(fleet.processes):
            fleet.stop(name)
        subprocess.run(["umount", str(disk)], check=True)


class Fleet:
    """A scheduler and workers with one store. Use it in a `with` statement: everything is stopped at its end."""

    def __init__(self, name):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix=f"ablate-{name}-"))
        (self.home / "run").mkdir(mode=0o700)
        self.store = self.home / "results.db"
        self.address = f"unix:{self.home}/run/scheduler.sock"
        self.processes = {}
        self.environment = dict(os.environ, ABLATE_HOME=str(self.home), ABLATE_SCHEDULER=self.address,
                                ABLATE_CHECKPOINT_SECONDS="1", NO_COLOR="1")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for name in list(self.processes):
            self.stop(name)
        if kind is None:
            shutil.rmtree(self.home, ignore_errors=True)
        else:
            for log in sorted(self.home.glob("*.log")):
                print(f"---- {log.name}\n{log.read_text(errors='replace')[-4000:]}")
            say(f"left for a look: {self.home}")

    def start(self, name, *argv):
        log = open(self.home / f"{name}.log", "ab")
        self.processes[name] = subprocess.Popen([str(BIN / argv[0]), *map(str, argv[1:])], env=self.environment, stdout=log,
                                                stderr=log, stdin=subprocess.DEVNULL)

    def start_scheduler(self, *options):
        self.start("scheduler", "ablate-scheduler", "--store", self.store, "--listen", self.address, "--http-port", 0,
                   "--heartbeat-ms", 300, "--lease-ms", 3000, *options)
        self.until(self.listens, "the scheduler listens")  # before, commands that only look read the results file
        self.until(lambda: self.ablate("ls", "--json", check=False).returncode == 0, "the scheduler answers")

    def listens(self):
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(self.address.removeprefix("unix:")) == 0

    def start_worker(self, name, *options, runs=None):
        self.start(name, "ablate-worker", "--scheduler", self.address, "--home", self.home / name, "--name", name,
                   "--runs-root", runs or self.home / "runs", *options)

    def start_on(self, machine, *options, runs=None):
        """A worker of the name of its machine, which is its host's name too; with a runs folder of that machine's alone, unless told
        which."""
        home = self.home / machine
        command = [BIN / "ablate-worker", "--scheduler", self.address, "--home", home, "--name", machine, "--runs-root",
                   runs or home / "runs", "--slots", 1, "--threads", 1, *options]
        self.start(machine, "/usr/bin/env", *host_names(), "sh", "-c", 'hostname "$0" && exec "$@"', machine, *command)

    def lose(self, machine):
        """Its worker dies, and all is gone that was that machine's alone."""
        self.kill(machine)
        shutil.rmtree(self.home / machine)

    def kill(self, name):
        process = self.processes.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self, name):
        process = self.processes.pop(name)
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def ablate(self, *argv, check=True):
        done = subprocess.run([str(BIN / "ablate"), *map(str, argv)], env=self.environment, text=True, capture_output=True,
                              timeout=120, stdin=subprocess.DEVNULL)
        if check and done.returncode != 0:
            raise AssertionError(f"ablate {' '.join(map(str, argv))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def json(self, *argv):
        return json.loads(self.ablate(*argv, "--json").stdout)

    def trials(self, sweep):
        return self.json("show", sweep).get("trials", [])

    def until(self, condition, what, seconds=300):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for name, process in self.processes.items():
                if process.poll() is not None:
                    raise AssertionError(f"{name} ended with {process.returncode} while waiting until {what}")
            found = condition()
            if found:
                return found
            time.sleep(0.1)
        raise AssertionError(f"waited {seconds} s in vain until {what}")

    def wait_for(self, sweep, seconds=600):
        return self.until(lambda: self.json("show", sweep)["summary"]["state"] in ("SWEEP_STATE_COMPLETED", "SWEEP_STATE_INCOMPLETE", "SWEEP_STATE_FAILED"),
                          f"{sweep} is over", seconds)

    def running(self, sweep, worker=None, step=1):
        """A trial in the middle of its training."""
        for trial in self.trials(sweep):
            if trial["state"] == "TRIAL_STATE_RUNNING" and trial["step"] >= step and worker in (None, trial["worker"]):
                if trial["total_steps"] == 0 or trial["step"] < 0.7 * trial["total_steps"]:
                    return trial
        return None


def expect(condition, what):
    if not condition:
        raise AssertionError(what)
    say(f"ok: {what}")
