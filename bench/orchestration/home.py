# SPDX-License-Identifier: Apache-2.0
"""The real programs in a folder of their own, and what they cost. Whatever is started here is ended here, by its number, also after Ctrl-C."""
import atexit
import ctypes
import fcntl
import json
import os
import pathlib
import pty
import resource
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from server import BUILD, built  # noqa: E402

BIN = pathlib.Path(os.environ.get("ABLATE_BIN", BUILD.parent / "bin"))
TICKS = os.sysconf("SC_CLK_TCK")
PATIENCE = 60
_prctl = ctypes.CDLL(None).prctl


def program(name):
    return built(name, BIN)


def interrupt_on_signals():
    """From now on the first SIGINT, SIGTERM or SIGHUP is a KeyboardInterrupt, and what ends the programs then is not interrupted again."""
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def interrupt(*_):
        for number in signals:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in signals:
        signal.signal(number, interrupt)


# --- what there is to know of a process ---

def _stat(pid):
    """The fields of /proc/PID/stat behind the name, or None where there is no such process any more."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else fields


def _running(pid):
    return _stat(pid) or sys.exit(f"bench.py: process {pid} has ended while it was measured")


def cpu_seconds(pid):
    """Of the process alone: what it has started and waited for is in `children_cpu_seconds`."""
    fields = _running(pid)
    return (int(fields[11]) + int(fields[12])) / TICKS


def children_cpu_seconds(pid):
    fields = _running(pid)
    return (int(fields[13]) + int(fields[14])) / TICKS


def memory_mib(pid, what="VmRSS"):
    """VmRSS: resident now; VmHWM: at its most."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(what + ":")).split()[1]) / 1024


def below(pid):
    """{process id: start} of a process and all that it has started."""
    children, starts = {}, {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (fields := _stat(entry)):
            starts[int(entry)] = fields[19]
            children.setdefault(int(fields[1]), []).append(int(entry))
    found, todo = {}, [pid]
    while todo:
        one = todo.pop()
        if one in starts and one not in found:
            found[one] = starts[one]
            todo += children.get(one, [])
    return found


def child_called(pid, name):
    """The child of a process that runs a program."""
    for child in below(pid):
        try:
            if child != pid and os.readlink(f"/proc/{child}/exe").rpartition("/")[2] == name:
                return child
        except OSError:
            pass
    return None


# --- programs ---

def _own_life():
    """Between fork and exec: Ctrl-C is not for it, and it does not outlive this program."""
    os.setsid()
    _prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def start(argv, **options):
    return subprocess.Popen([str(word) for word in argv], preexec_fn=_own_life, **options)


def run(argv, **options):
    """To its end, which must be a good one. Returns: what it said."""
    return subprocess.run([str(word) for word in argv], check=True, stdout=subprocess.PIPE, preexec_fn=_own_life, **options).stdout


def stop(process, patience=30):
    """Asks a program to end, then insists, with all that it has started."""
    everything = below(process.pid)
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for pid, started in everything.items():
        fields = _stat(pid)
        if fields and fields[19] == started:
            os.kill(pid, signal.SIGKILL)


class Drain(threading.Thread):
    """Throws away what `read` gives, to its end. `began` is set with the first of it."""

    def __init__(self, read):
        super().__init__(daemon=True)
        self.read, self.began = read, threading.Event()
        self.start()

    def run(self):
        try:
            while self.read():
                self.began.set()
        except OSError:
            pass


class Home:
    """A folder with a results file, and the programs that use it."""

    def __init__(self, work=None, name="orchestration"):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"ablate-bench-{name}-", dir=work))
        self.store, self.socket = self.folder / "results.db", self.folder / "run" / "scheduler.sock"
        self.processes = {}
        self.environment = {key: value for key, value in os.environ.items() if key != "ABLATE_SCHEDULER"}
        self.environment.update(ABLATE_HOME=str(self.folder), NO_COLOR="1")

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        if kind not in (None, KeyboardInterrupt):
            for log in sorted(self.folder.rglob("*.log")):
                print(f"---- {log.name}\n{log.read_text(errors='replace')[-2000:]}", file=sys.stderr)
        for name in reversed(list(self.processes)):
            self.stop(name)
        # Not now: ext4 without a journal looks at every inode that was deleted in the last minute before it gives out
        # one, so that the next part would pay for the files of this one (three times the worker's CPU, measured).
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)

    def start(self, name, argv, **options):
        with open(self.folder / f"{name}.log", "ab") as log:
            options = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, "env": self.environment, **options}
            self.processes[name] = start(argv, **options)
        return self.processes[name]

    def stop(self, name):
        if process := self.processes.pop(name, None):
            stop(process)

    def kill(self, name):
        process = self.processes.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def until(self, condition, what, patience=PATIENCE, every=0.02):
        end = time.monotonic() + patience
        while not (found := condition()):
            for name, process in self.processes.items():
                if process.poll() is not None:
                    raise RuntimeError(f"{name} ended with {process.returncode} while waiting until {what}")
            if time.monotonic() > end:
                raise TimeoutError(f"{patience} s were not enough until {what}")
            time.sleep(every)
        return found

    # The whole of it, as a user has it.

    def up(self, *options):
        self.start("up", [program("ablate"), "up", *options])
        record = self.folder / "run" / "up.json"
        self.until(record.exists, "ablate is up")
        self.url = json.loads(record.read_text())["url"]
        self.scheduler = child_called(self.processes["up"].pid, "ablate-scheduler")
        self.worker = child_called(self.processes["up"].pid, "ablate-worker")

    # The scheduler alone, for the workers of this benchmark.

    def start_scheduler(self, wait=True):
        self.socket.parent.mkdir(mode=0o700, exist_ok=True)
        log = self.folder / "scheduler.log"
        begun = log.stat().st_size if log.exists() else 0
        self.scheduler = self.start("scheduler", [program("ablate-scheduler"), "--store", self.store, "--listen", self.address,
                                                  "--http-port", 0]).pid
        if not wait:
            return

        def ready():
            said = log.read_bytes()[begun:].decode(errors="replace")
            return said.partition("dashboard at ")[2].partition("\n")[0] if "is ready" in said else None
        self.url = self.until(ready, "the scheduler is ready")

    @property
    def address(self):
        return f"unix:{self.socket}"

    def start_null_worker(self, *options, name="null"):
        return self.start(name, [built("null_worker"), "--scheduler", self.address, "--name", name, *options], stdout=subprocess.PIPE)

    def null_worker(self, *options, name="null", patience=PATIENCE):
        """What it says at its end."""
        return self.end_of_null_worker(self.start_null_worker(*options, name=name), name, patience)

    def end_of_null_worker(self, process, name="null", patience=PATIENCE):
        try:
            said = process.communicate(timeout=patience)[0]
        except subprocess.TimeoutExpired:
            process.terminate()  # says what it has done so far
            said = process.communicate(timeout=PATIENCE)[0]
        del self.processes[name]
        if process.returncode != 0:
            raise RuntimeError(f"null_worker: exit code {process.returncode}: {(self.folder / f'{name}.log').read_text()[-500:]}")
        return json.loads(said)

    def mean_commit_ms(self):
        """Of the scheduler's transactions so far, as its /metrics has them."""
        with urllib.request.urlopen(f"{self.url.rstrip('/')}/metrics", timeout=10) as page:
            lines = dict(line.rsplit(" ", 1) for line in page.read().decode().splitlines() if line.startswith("ablate_store_commit_seconds_"))
        return float(lines["ablate_store_commit_seconds_sum"]) / float(lines["ablate_store_commit_seconds_count"]) * 1e3

    # Commands.

    def ablate(self, *argv, patience=600):
        """A command, its output read by a pipe. Returns: seconds, and what it said."""
        begun = time.perf_counter()
        done = subprocess.run([str(program("ablate")), *map(str, argv)], env=self.environment, capture_output=True, stdin=subprocess.DEVNULL,
                              timeout=patience, start_new_session=True)
        took = time.perf_counter() - begun
        said = done.stdout.decode()
        if done.returncode != 0:
            raise RuntimeError(f"ablate {' '.join(map(str, argv))}: exit code {done.returncode}\n{said[-500:]}{done.stderr.decode()[-500:]}")
        return took, said

    def ablate_on_terminal(self, *argv, patience=600):
        """A command whose output is a terminal. Returns: seconds until it has ended and all of that is read."""
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("4H", 50, 200, 0, 0))
        begun = time.perf_counter()
        process = subprocess.Popen([str(program("ablate")), *map(str, argv)], stdin=subprocess.DEVNULL, stdout=its, stderr=its,
                                   env={**self.environment, "TERM": "xterm"}, start_new_session=True)
        os.close(its)
        watchdog = threading.Timer(patience, process.kill)
        watchdog.start()
        said = b""
        try:
            while piece := os.read(ours, 1 << 16):
                said = (said + piece)[-2000:]
        except OSError:  # nobody has the other side any more
            pass
        except BaseException:
            process.kill()
            raise
        finally:
            os.close(ours)
            code = process.wait()
            watchdog.cancel()
        took = time.perf_counter() - begun
        if code != 0:
            raise RuntimeError(f"ablate {' '.join(map(str, argv))}: exit code {code}\n{said.decode(errors='replace')}")
        return took

    def write_sweep(self, name, argv, trials, seeds=10, columns=None, more=""):
        """A sweep of a command: `trials` in all, rows by seeds. Returns: its file."""
        seeds = min(seeds, trials)
        file = self.folder / f"{name}.yaml"
        file.write_text(f"ablate: 1\nname: {json.dumps(name)}\ncommand: {{argv: {json.dumps(argv)}, params: {{i: 0}}, version: \"1\"}}\n"
                        f"factors: {{params.i: {json.dumps(list(range(trials // seeds)))}}}\nseeds: {seeds}\n"
                        f"table: {{columns: [{columns or '{name: i, setting: params.i}'}]}}\n{more}")
        return file

    # The results file, read as anybody may.

    def ask(self, sql, *values):
        db = sqlite3.connect(f"file:{self.store}?mode=ro", uri=True, timeout=10)
        try:
            return db.execute(sql, values).fetchall()
        finally:
            db.close()

    def any_open(self):
        return bool(self.ask("SELECT 1 FROM trial WHERE state IN ('queued', 'leased', 'running') LIMIT 1"))

    def ended(self, sweep):
        """How many of a sweep's runs have completed, and when the last did, in seconds since the epoch."""
        count, last = self.ask("""SELECT COUNT(*), MAX(r.ended_ms) FROM sweep s JOIN sweep_trial st ON st.sweep_id = s.id
                                  JOIN run r ON r.trial_id = st.trial_id WHERE s.name = ? AND r.state = 'completed'""", sweep)[0]
        return count, (last or 0) / 1000


def allow_descriptors():
    """For programs that talk with a thousand others."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
