# SPDX-License-Identifier: Apache-2.0
"""MLflow's, Optuna's and Aim's pages of runs beside ours: each on its own store of the runs that store_maker makes for us, served by its own
server, in the same browser, in the same run. What a peer cannot do here is said, and the others go on."""
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import time
import urllib.request

import dashboard
from home import Home, below, memory_mib, run

HERE = pathlib.Path(__file__).resolve().parent
STORES = HERE / "peer_stores.py"
MOST_SECONDS = {"runs": 900, "sweep": 300}  # for a peer's store: what is not made by then stays unmade
PATIENCE = 300  # for a page


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Peer:
    """`serve`: the command of its server; `page` and `list_call`: below its address, of its page of runs and of what that page asks for them."""

    def __init__(self, name, package, serve, ready, page, list_call, body=None):
        self.name, self.package, self.serve, self.ready, self.page, self.list_call, self.body = name, package, serve, ready, page, list_call, body

    def python(self, folder):
        return folder / self.name / "bin" / "python"

    def install(self, folder):
        """Its environment, pinned. Throws: CalledProcessError with pip's own words."""
        if not self.python(folder).exists():
            folder.mkdir(parents=True, exist_ok=True)
            try:
                run([sys.executable, "-m", "venv", folder / self.name], stderr=subprocess.PIPE)
                run([self.python(folder), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement",
                     HERE / "requirements" / f"{self.name}.txt"], stderr=subprocess.PIPE)
            except BaseException:
                shutil.rmtree(folder / self.name, ignore_errors=True)  # half an environment would be taken for one
                raise
        return run([self.python(folder), "-c", f"import importlib.metadata; print(importlib.metadata.version({self.package!r}))"]).decode().strip()


PEERS = [
    # as the peers' own benchmark found it best: one HTTP worker, no jobs
    Peer("mlflow", "mlflow", lambda store, port: ["mlflow", "server", "--backend-store-uri", f"sqlite:///{store}/m.db", "--default-artifact-root",
                                                  f"{store}/artifacts", "--host", "127.0.0.1", "--port", port, "--workers", 1],
         "health", "#/experiments/1/runs", "ajax-api/2.0/mlflow/runs/search",
         {"experiment_ids": ["1"], "order_by": ["attributes.start_time DESC"], "run_view_type": "ACTIVE_ONLY", "max_results": 100}),
    Peer("optuna", "optuna-dashboard", lambda store, port: ["optuna-dashboard", f"sqlite:///{store}/o.db", "--host", "127.0.0.1", "--port", port],
         "api/studies", "dashboard/studies/1/trials", "api/studies/1?after=0"),
    Peer("aim", "aim", lambda store, port: ["aim", "up", "--repo", store, "--host", "127.0.0.1", "--port", port, "-y"],
         "api/projects/", "runs", "api/runs/search/run/?q=&limit=45&report_progress=false"),
]


def ask(url, body=None, timeout=PATIENCE):
    request = urllib.request.Request(url, data=body and json.dumps(body).encode(), headers={"Content-Type": "application/json"} if body else {})
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return answer.read()


def is_ready(url):
    try:
        ask(url, timeout=5)
        return True
    except OSError:
        return False


def peers(bench, figures):
    """Each peer at each of the two sizes of the table; then our figures divided by theirs."""
    shapes = {name: store for name, store in dashboard.stores(bench).items() if name in MOST_SECONDS}
    for peer in PEERS:
        try:
            version = peer.install(bench.peers)
        except (subprocess.CalledProcessError, OSError) as error:
            words = (getattr(error, "stderr", None) or str(error).encode()).decode(errors="replace").strip().splitlines()
            figures.remark(f"{peer.name}: cannot be installed here: {words[-1] if words else error}")
            continue
        figures.remark(f"{peer.name}: {peer.package} {version}; nothing is written to its store meanwhile")
        for name, store in shapes.items():
            try:
                beside(bench, figures, peer, store, 30 if bench.quick else MOST_SECONDS[name])
            except (subprocess.SubprocessError, RuntimeError, OSError) as error:  # TimeoutError is an OSError
                figures.remark(f"{peer.name}, {store.name}: not measured: {str(error).splitlines()[0]}")
    compare(figures)


def part_of(peer):
    return f"{dashboard.SERVER}, {peer.name}"


def beside(bench, figures, peer, store, limit):
    part, steps = part_of(peer), store.points // 2
    with Home(bench.work, peer.name) as home:
        place = home.folder / "store"
        (home.folder / "home").mkdir()
        bin_folder = peer.python(bench.peers).parent
        home.environment.update(HOME=str(home.folder / "home"), PATH=f"{bin_folder}:{os.environ['PATH']}", DO_NOT_TRACK="true",
                                MLFLOW_DISABLE_TELEMETRY="true", MLFLOW_SERVER_ENABLE_JOB_EXECUTION="false", PYTHONWARNINGS="ignore")
        made = json.loads(run([peer.python(bench.peers), STORES, peer.name, place, store.trials, steps, limit], env=home.environment,
                              stderr=subprocess.DEVNULL, timeout=limit * 4 + 300).decode().splitlines()[-1])
        figures.add(part, "  making the store", "s", store.name, made["seconds"])
        if made["trials"] < store.trials:
            figures.remark(f"{peer.name}, {store.name}: {made['trials']:,} trials were stored in {made['seconds']:,.0f} s, where its writer was stopped: "
                           "what follows is of these" if made["trials"] * 10 >= store.trials else
                           f"{peer.name}, {store.name}: {made['trials']:,} trials were stored in {made['seconds']:,.0f} s, where its writer was "
                           f"stopped: {store.trials:,} would have taken {made['seconds'] / made['trials'] * store.trials / 3600:.1f} hours")
            if made["trials"] * 10 < store.trials:
                return
        port = free_port()
        url = f"http://127.0.0.1:{port}/"
        home.start(peer.name, [str(word) for word in peer.serve(place, port)], cwd=home.folder)
        home.until(lambda: is_ready(url + peer.ready), f"{peer.name} answers", PATIENCE, 0.2)
        time.sleep(2 if bench.quick else 15)  # some answer long before their helpers have started
        serve(bench, figures, peer, home, url, store)


def serve(bench, figures, peer, home, url, store):
    part, times, size = part_of(peer), [], 0
    begun = time.monotonic()
    while len(times) < (5 if bench.quick else 20) and time.monotonic() - begun < (20 if bench.quick else PATIENCE):
        asked = time.perf_counter()
        size = len(ask(url + peer.list_call, peer.body))
        times.append(time.perf_counter() - asked)
    figures.add(part, f"its list of runs, the first of {len(times)} times", "ms", store.name, times[0] * 1e3)
    again = times[1:] or times
    figures.add(part, "its list of runs: p95", "ms", store.name, (statistics.quantiles(again, n=20)[-1] if len(again) > 1 else again[0]) * 1e3)
    figures.add(part, "  its list of runs: whole", "kB", store.name, size / 1e3)
    slow = times[-1] > 10
    dashboard.in_browser(bench, figures, part, store.name, {
        "side": peer.name, "url": url + peer.page, "repetitions": 1 if slow else 2 if bench.quick else 5, "seconds": 3 if bench.quick else 20,
        "patience": PATIENCE})
    figures.add(part, "  peak memory of the server, all processes", "MiB", store.name,
                sum(memory_mib(pid, "VmHWM") for pid in below(home.processes[peer.name].pid)))


def compare(figures):
    """Our median by a peer's, of what both have."""
    same = [("first contentful paint", dashboard.BROWSER, "a sweep's table: first contentful paint", "a table of runs: first contentful paint"),
            ("the table is drawn", dashboard.BROWSER, "a sweep's table: drawn", "a table of runs: drawn"),
            ("kB until then", dashboard.BROWSER, "a sweep's table: until then over the network", "a table of runs: until then over the network"),
            ("sort", dashboard.BROWSER, "sort", "sort"),
            ("its list, p95", dashboard.SERVER, "A sweep: its table: p95", "its list of runs: p95"),
            ("most memory of the server", dashboard.SERVER, "  most memory of the scheduler, also by the browser",
             "  peak memory of the server, all processes"),
            ("CPU of a tab that is left open", dashboard.BROWSER, "a live tab, another sweep: CPU of its page",
             "a tab that is left open: CPU of its page")]
    for peer in PEERS:
        for what, of, ours, theirs in same:
            for size in figures.sizes(part_of(peer)):
                one, other = figures.of(of, ours, size), figures.of(part_of(peer), theirs, size)
                if one and other and statistics.median(other):
                    figures.ratios.append((part_of(peer), f"ours / {peer.name}: {what}", size, [statistics.median(one) / statistics.median(other)], ""))
