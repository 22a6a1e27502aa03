# SPDX-License-Identifier: Apache-2.0
"""What trials cost from the submission to their end: noop, null, submit, idle, latency, fleet."""
import contextlib
import fcntl
import json
import os
import selectors
import socket
import subprocess
import sys
import time
import urllib.parse

from home import HERE, Drain, Home, allow_descriptors, children_cpu_seconds, cpu_seconds, memory_mib, program, run, start, stop

WATCHERS = 10


class Gate:
    """Trials that keep all slots of a worker until it is opened: what is submitted meanwhile waits."""

    def __init__(self, home, slots):
        self.file = open(home.folder / "gate", "w")
        fcntl.flock(self.file, fcntl.LOCK_EX)
        home.ablate("submit", home.write_sweep("gate", ["flock", "--shared", self.file.name, "true"], slots, seeds=slots), "--json")
        home.until(lambda: home.ask("SELECT COUNT(*) FROM trial WHERE state IN ('leased', 'running')")[0][0] == slots, "all slots are taken")

    def open(self):
        """Returns: when, in seconds since the epoch."""
        now = time.time()
        self.file.close()
        return now


class Audience:
    """Processes that watch a sweep, and one reader of the dashboard's events. In a `with` statement, in which each of them has been told
    something."""

    def __init__(self, home, sweep):
        self.home, self.sweep = home, sweep
        self.ends = contextlib.ExitStack()

    def __enter__(self):
        with self.ends as ends:  # where something fails below
            readers = [self.watch(ends) for _ in range(WATCHERS)] + [self.listen(ends)]
            if not all(reader.began.wait(120) for reader in readers):
                raise TimeoutError("a watcher was told nothing for 120 s")
            self.ends = ends.pop_all()
        return self

    def __exit__(self, *_):
        self.ends.close()

    def watch(self, ends):
        process = start([program("ablate"), "watch", self.sweep], env=self.home.environment, stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        ends.callback(stop, process)
        return Drain(lambda: os.read(process.stdout.fileno(), 1 << 16))

    def listen(self, ends):
        address = urllib.parse.urlsplit(self.home.url)
        stream = socket.create_connection((address.hostname, address.port))
        ends.callback(stream.close)
        ends.callback(stream.shutdown, socket.SHUT_RDWR)
        stream.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode())
        return Drain(lambda: stream.recv(1 << 16))


def run_queued(bench, figures, size, watched):
    """Trials that were queued before the first of them could start, one worker with two slots."""
    case = f"with {WATCHERS} watchers and a dashboard" if watched else "one worker, 2 slots"
    with Home(bench.work, "noop") as home:
        home.up("--slots", 2, "--allow-commands")
        gate = Gate(home, 2)
        submitted, _ = home.ablate("submit", home.write_sweep("noop", ["/bin/true"], size), "--json")
        with Audience(home, "noop") if watched else contextlib.nullcontext():
            scheduler, worker, programs = cpu_seconds(home.scheduler), cpu_seconds(home.worker), children_cpu_seconds(home.worker)
            begun, lists, next_list = gate.open(), [], time.monotonic() + 5
            limit = time.monotonic() + bench.limit
            while home.any_open() and time.monotonic() < limit:
                time.sleep(0.05)
                if time.monotonic() > next_list:  # one in ten seconds costs the run next to nothing
                    lists.append(home.ablate("ls")[0])
                    next_list = time.monotonic() + 10
            done, last = home.ended("noop")
            scheduler, worker = cpu_seconds(home.scheduler) - scheduler, cpu_seconds(home.worker) - worker
            programs = children_cpu_seconds(home.worker) - programs
        if done < size:
            figures.remark(f"noop, {case}: {done:,} of {size:,} trials in {bench.limit} s; the numbers are of these")
        if done == 0:
            return
        figures.add("noop", case, "ms/trial", size, (last - begun) / done * 1e3)
        if not watched:
            figures.add("noop", "and to submit them", "ms/trial", size, (last - begun) / done * 1e3 + submitted / size * 1e3)
        for name, seconds in ("scheduler", scheduler), ("worker", worker), *([] if watched else [("programs", programs)]):
            figures.add("noop", f"  CPU of {name}" + (", watched" if watched else ""), "ms/trial", size, seconds / done * 1e3)
        for seconds in lists:
            figures.add("noop", "  ablate ls meanwhile" + (", watched" if watched else ""), "ms", size, seconds * 1e3)


def xargs(size):
    begun = time.perf_counter()
    run(["xargs", "-P2", "-n1", "/bin/true"], input="\n".join(map(str, range(size))), text=True)
    return (time.perf_counter() - begun) / size * 1e3


def hyperqueue(bench, size):
    with Home(bench.work, "hyperqueue") as home:
        process = home.start("hyperqueue", [bench.hq, HERE / "hyperqueue_side.py", size], stdout=subprocess.PIPE, cwd=home.folder,
                             env={**home.environment, "TMPDIR": str(home.folder)})
        said = process.communicate(timeout=bench.limit + 60)[0]
        if process.returncode != 0:
            sys.exit(f"bench.py: HyperQueue: {(home.folder / 'hyperqueue.log').read_text()[-500:]}")
        return float(said.split()[-1]) / size * 1e3  # behind what its server says of itself


def noop(bench, figures):
    for size in bench.sizes:
        for _ in range(bench.repetitions):
            figures.add("noop", "xargs -P2 -n1 /bin/true", "ms/trial", size, xargs(size))
            if bench.hq:
                figures.add("noop", "HyperQueue, 2 cores", "ms/trial", size, hyperqueue(bench, size))
            run_queued(bench, figures, size, watched=False)
            run_queued(bench, figures, size, watched=True)
    figures.remark("HyperQueue keeps nothing on disk, and its client looks for the end once a second: up to a second too long in all"
                   if bench.hq else "HyperQueue was left out: --hq PYTHON names a Python that has its package (pip install hyperqueue)")
    figures.compare("noop", "ablate / xargs", "one worker, 2 slots", "xargs -P2 -n1 /bin/true", "at most 2")
    figures.compare("noop", "ablate / HyperQueue", "one worker, 2 slots", "HyperQueue, 2 cores", "below 1")
    figures.compare("noop", "watched / not watched", f"with {WATCHERS} watchers and a dashboard", "one worker, 2 slots", "at most 1.3")


def null(bench, figures):
    """As many trials as the scheduler can lease and store: the worker has no programs."""
    case = f"{bench.sessions} × {bench.slots} slots"
    for size in bench.sizes:
        for _ in range(bench.repetitions):
            with Home(bench.work, "null") as home:
                home.start_scheduler()
                home.ablate("submit", home.write_sweep("null", ["/bin/true"], size), "--json")
                cpu = cpu_seconds(home.scheduler)
                process = home.start_null_worker("--sessions", bench.sessions, "--slots", bench.slots, "--trials", size)
                said = home.end_of_null_worker(process, patience=bench.limit)
                cpu = cpu_seconds(home.scheduler) - cpu
                commit = home.mean_commit_ms()
                done = said["ended"]
                if done < size:
                    figures.remark(f"null: {done:,} of {size:,} trials in {bench.limit} s; the numbers are of these")
                if done == 0:
                    continue
                figures.add("null", case, "trials/s", size, done / (said["last_ack"] - said["first_assign"]))
                figures.add("null", "  CPU of scheduler", "ms/trial", size, cpu / done * 1e3)
                figures.add("null", "  CPU of worker", "ms/trial", size, said["cpu_s"] / done * 1e3)
                figures.add("null", "  a transaction, commit included, mean", "ms", size, commit)
                for share in "p50", "p90", "p99", "max":
                    figures.add("null", f"  batch to acknowledgement, {share}", "ms", size, said["ack_ms"][share])
                if said["fenced"] or said["broken"]:
                    figures.remark(f"null: {said['fenced']} runs fenced, {said['broken']} sessions broken")
    figures.remark("null: goal 5,000 trials/s with 1 × 16 slots")


def submit(bench, figures):
    for size in bench.sizes:
        for _ in range(bench.repetitions):
            with Home(bench.work, "submit") as home:
                home.start_scheduler()
                file, cpu = home.write_sweep("submit", ["/bin/true"], size), cpu_seconds(home.scheduler)
                took, _ = home.ablate("submit", file, "--json")
                figures.add("submit", "ablate submit, until it has ended", "s", size, took)
                figures.add("submit", "  CPU of scheduler", "s", size, cpu_seconds(home.scheduler) - cpu)
                figures.add("submit", "  memory of scheduler, most", "MiB", size, memory_mib(home.scheduler, "VmHWM"))
    figures.remark("submit: goal 0.3 s for 10,000 trials, 2 s for 100,000")


def idle(bench, figures):
    """Nothing happens: both slots are busy, everything else waits."""
    for size in (0, *bench.sizes):
        with Home(bench.work, "idle") as home:
            home.up("--slots", 2, "--allow-commands")
            gate = Gate(home, 2)
            if size:
                home.ablate("submit", home.write_sweep("idle", ["/bin/true"], size), "--json")
            time.sleep(1 if bench.quick else 5)
            for _ in range(bench.repetitions):
                programs = {"scheduler": home.scheduler, "worker": home.worker}
                before, begun = {name: cpu_seconds(pid) for name, pid in programs.items()}, time.perf_counter()
                time.sleep(bench.idle_seconds)
                passed = time.perf_counter() - begun
                for name, pid in programs.items():
                    figures.add("idle", f"CPU of {name}", "% of a core", size, (cpu_seconds(pid) - before[name]) / passed * 100)
                figures.add("idle", "memory of scheduler", "MiB", size, memory_mib(home.scheduler))
            gate.open()
    figures.remark("idle: goal below 1 % of a core and 200 MB with 100,000 trials queued; without a size: none")


def says(value, name):
    """Whether a message holds a number of this name, wherever."""
    if isinstance(value, dict):
        return isinstance(value.get(name), (int, float)) or any(says(inner, name) for inner in value.values())
    return isinstance(value, list) and any(says(inner, name) for inner in value)


def until_first_metric(home, file, metric, patience=120):
    """Submits and watches in one command. Returns: seconds until its output has the metric, and until its end."""
    begun = time.perf_counter()
    process = subprocess.Popen([str(program("ablate")), "submit", str(file), "--watch", "--json"], env=home.environment,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
    seen, rest = None, b""
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while selector.select(patience):
                piece = os.read(process.stdout.fileno(), 1 << 16)
                now = time.perf_counter()
                if not piece:
                    if process.wait(patience) != 0 or seen is None:
                        raise RuntimeError(f"{file.name}: exit code {process.returncode}, and {metric} was {'' if seen else 'not '}seen")
                    return seen, now - begun
                *lines, rest = (rest + piece).split(b"\n")
                if seen is None and any(says(json.loads(line), metric) for line in lines if metric.encode() in line):
                    seen = now - begun
        raise TimeoutError(f"nothing was said for {patience} s")
    finally:
        process.kill()
        process.wait()


def latency(bench, figures):
    with Home(bench.work, "latency") as home:
        home.up("--slots", 2, "--allow-commands")
        event = json.dumps({"event": "metric", "step": 1, "values": {"answer": 42}})
        for i in range(max(bench.repetitions, 3 if bench.quick else 10)):
            file = home.write_sweep(f"null-{i}", ["/bin/echo", event.replace("{", "{{")], 1, columns="{name: answer, metric: answer}")
            time.sleep(1)  # a quiet service: where much changes, watchers hear it four times a second
            seen, end = until_first_metric(home, file, "answer")
            for name, seconds in ("a null trial: first metric", seen), ("a null trial: end of submit --watch", end):
                figures.add("latency", name, "ms", 0, seconds * 1e3)
        if not home.ablate("workers", "--json")[1].count('"shapes"'):
            return figures.remark("latency: the worker has no trainer; its part was left out")
        for i in range(bench.repetitions):
            file = home.folder / f"trainer-{i}.yaml"
            file.write_text(f"ablate: 1\nname: trainer-{i}\nbase:\n  model: {{preset: simple-vit-nano}}\n"
                            "  data: {name: shapes, train_images: 64, val_images: 32}\n"
                            f"  recipe: {{use: demo, batch: 32, epochs: 1}}\nrows: [{{id: a}}]\nseeds: [{i}]\n")
            seen, end = until_first_metric(home, file, "train/loss")
            for name, seconds in ("ablate-trainer on the CPU: first metric", seen), ("ablate-trainer: end of submit --watch", end):
                figures.add("latency", name, "ms", 0, seconds * 1e3)
    figures.remark("latency: from the start of `ablate submit --watch --json` until it prints the metric; nothing else to do; goal 50 ms and 1,500 ms")


def fleet(bench, figures):
    """A thousand workers, each in a session of its own, whose runs take half a minute."""
    allow_descriptors()
    seconds = bench.minutes * 60
    work_seconds = min(30, seconds / 4)
    with Home(bench.work, "fleet") as home:
        home.start_scheduler()
        trials = min(100_000, int(bench.fleet * (seconds / work_seconds + 2)))
        home.ablate("submit", home.write_sweep("fleet", ["/bin/true"], trials - trials % 10), "--json")
        process = home.start_null_worker("--sessions", bench.fleet, "--slots", 1, "--work-ms", round(work_seconds * 1000), "--seconds", seconds)
        home.until(lambda: home.ask("SELECT COUNT(*) FROM worker WHERE connected")[0][0] == bench.fleet, "all workers are connected", 120)
        cpu, begun = cpu_seconds(home.scheduler), time.perf_counter()
        said = home.end_of_null_worker(process, patience=seconds + 120)
        cpu, passed = cpu_seconds(home.scheduler) - cpu, time.perf_counter() - begun
        lost = home.ask("SELECT COUNT(*) FROM run WHERE state = 'lost' OR silent")[0][0]
        figures.add("fleet", "CPU of scheduler", "% of a core", bench.fleet, cpu / passed * 100)
        figures.add("fleet", "memory of scheduler, most", "MiB", bench.fleet, memory_mib(home.scheduler, "VmHWM"))
        figures.add("fleet", "batch to acknowledgement, p99", "ms", bench.fleet, said["ack_ms"]["p99"] or 0)
        for name, count in ("trials ended", said["ended"]), ("leases lost", lost), ("runs fenced", said["fenced"]), \
                           ("sessions broken", said["broken"]):
            figures.add("fleet", name, "", bench.fleet, count)
    figures.remark(f"fleet: {bench.fleet:,} workers of one slot for {bench.minutes:g} minutes, {work_seconds:g} s a trial; goal: no lease lost")
