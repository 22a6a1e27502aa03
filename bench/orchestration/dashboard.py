# SPDX-License-Identifier: Apache-2.0
"""What a dashboard costs, while points come in: its server, in every read of every page, and who looks at it, in a browser; beside it, with
`--peers`, those of MLflow, Optuna and Aim on their own stores of the same runs (peers.py)."""
import gzip
import http.client
import json
import re
import statistics
import subprocess
import sys
import time
import urllib.parse
from typing import NamedTuple

from home import HERE, Home, memory_mib
from stores import make_store

POINTS_A_SECOND = 10_000
FAILED = 0.02  # of the trials; nine of ten are completed, the others wait
ROWS = 200  # of a table at once, as the page has them
SERVER, BROWSER = "dashboard", "dashboard, in a browser"


class Store(NamedTuple):
    name: str
    sweeps: int
    trials: int  # of each
    points: int  # of each trial, half of them of each of two metrics
    browser: bool = True  # whether it is also looked at in a browser


def stores(bench):
    """By the names that --stores takes."""
    few = bench.points_of_trial
    all_of_them = {
        "runs": Store("200 × 50 × 2", 1, 200, 100) if bench.quick else Store("2,000 × 500 × 2", 1, 2000, 1000),
        "sweep": Store("1,000 trials", 1, 1000, 20) if bench.quick else Store("100,000 trials", 1, 100_000, few),
        "sweeps": Store("10 × 100", 10, 100, 20, False) if bench.quick else Store("100 × 1,000", 100, 1000, few, False),
        "points": Store("1 M points", 1, 20, 50_000, False) if bench.quick else Store("20 M points", 1, 200, 100_000, False)}
    return {name: store for name, store in all_of_them.items() if name in bench.stores}


class Tab:
    """One connection of a browser."""

    def __init__(self, url):
        self.connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=120)
        self.etags = {}
        self.bytes = 0

    def read(self, path, again=False):
        """Seconds until all of the answer is there, and its status. `again`: what is known already is named, and what changed is asked for."""
        headers = {"Accept-Encoding": "gzip"}
        if again and path in self.etags:
            headers |= {"A-IM": "json-patch", "If-None-Match": self.etags[path]}
        return self._ask("GET", path, None, headers)

    def act(self, name, request):
        """The same of a call that a page makes."""
        return self._ask("POST", f"actions/{name}", json.dumps(request),
                         {"Accept-Encoding": "gzip", "Content-Type": "application/json", "Sec-Fetch-Site": "same-origin"})

    def _ask(self, method, path, body, headers):
        begun = time.perf_counter()
        self.connection.request(method, f"/api/v1/{path}" if path != "/api" else path, body, headers)
        answer = self.connection.getresponse()
        content = answer.read()
        took = time.perf_counter() - begun
        if answer.status not in (200, 226, 304):
            raise RuntimeError(f"{path}: {answer.status} {content[:200]!r}")
        self.etags[path] = answer.getheader("ETag")
        self.bytes += len(content)
        self.content = gzip.decompress(content) if answer.getheader("Content-Encoding") == "gzip" else content
        return took, answer.status

    def json(self, path):
        self.read(path)
        return json.loads(self.content)


def page_of(sweep):
    """What the page of a sweep reads."""
    part = f"first=0&count={ROWS}"
    return [f"sweeps/{sweep}?{part}", f"sweeps/{sweep}/table?{part}&statistics=1&long_form=1"]


def reads_of(tab, store, sweep):
    """All reads of all pages by name: the path of each, or the action and its request."""
    detail, table = page_of(sweep)
    runs, before = [], 0
    while len(runs) < 200 and (listed := tab.json(f"runs?sweep={sweep}&limit=1000&before={before}")["runs"]):  # the newest have failed
        runs += [run["id"] for run in listed if run["state"] == "RUN_STATE_COMPLETED"]
        before = listed[-1]["id"]
    rows, steps = tab.json(table)["left_out"] + ROWS, store.points // 2
    middle = f"first={rows // 2}&count={ROWS}"
    curves = {many: "&".join(f"run={run}" for run in runs[:many]) for many in (1, 20, 200)}
    day_ago = int(time.time() * 1000) - 24 * 3600 * 1000
    file = f"ablate: 1\nname: new\ncommand: {{argv: [/bin/true], params: {{i: 0}}, version: \"1\"}}\nfactors: {{params.i: {list(range(100))}}}\n" \
           "table: {columns: [{name: loss, metric: loss}]}\n"
    return {
        "Home: overview": "overview", "Home: failures": f"failures?since={day_ago}",
        "Sweeps: the newest": "sweeps?count=100", "Sweeps: after one of them": f"sweeps?count=100&after={sweep}",
        "Sweeps: searched by state": "search?count=100&query=state%3Aactive",
        "Sweeps: searched by name, sorted": "search?count=100&query=made&sort=-done",
        "Sweeps: searched by a value": "search?count=100&query=acc%3E75",
        "A sweep: head and trials": detail, "A sweep: its table": table, "A sweep: table, in the middle": table.replace(f"first=0&count={ROWS}", middle),
        "A sweep: table, the last rows": table.replace("first=0", f"first={max(0, rows - ROWS)}"),
        "A sweep: trials, in the middle": f"sweeps/{sweep}?{middle}", "A sweep: table, pivoted or not": f"sweeps/{sweep}/table?first=0&count={ROWS}&statistics=1",
        "A sweep: what it can be pivoted by": f"sweeps/{sweep}/factors", "A sweep: how a cell came about": f"sweeps/{sweep}/why?row=i%3D1&column=loss", "A sweep: where it is from": f"sweeps/{sweep}/provenance",
        "A sweep: what happened": f"sweeps/{sweep}/events?count=100",
        "A sweep: its file": f"sweeps/{sweep}/text",
        "A sweep: failures": f"failures?sweep={sweep}",
        **{f"A sweep: copied as {kind}": f"sweeps/{sweep}/printed?format={kind}" for kind in ("text", "markdown", "csv", "latex", "html")},
        "A sweep: copied, sorted and found": f"sweeps/{sweep}/printed?format=text&sort=-acc&find=1",
        "A sweep: curves of 200 runs": f"curves?{curves[200]}&name=loss&width=800",
        "A sweep: curves of 20 runs, zoomed": f"curves?{curves[20]}&name=loss&width=800&from={steps // 2}&to={steps // 2 + steps // 100}",
        "A sweep: what is new of 200 runs": f"curves?{curves[200]}&name=loss&width=800&from={steps}",
        "A search: its points": "sweeps/searched/tuning",
        "A run": f"runs/{runs[0]}", "A run: its curves": f"curves?{curves[1]}&width=1200", "A run: its curves by time": f"curves?{curves[1]}&width=1200&times=1",
        "A run: zoomed": f"curves?{curves[1]}&width=1200&from={steps // 2}&to={steps // 2 + steps // 100}", "A run: log": f"runs/{runs[0]}/log?offset=0",
        "A run: probes": f"runs/{tab.probed}/probes", "A run: a probe": f"runs/{tab.probed}/probes?name=attention%28images%3D1%29",
        "A run: resources": f"runs/{tab.growing}/resources?points=600", "A run: that is under way": f"runs/{tab.growing}", "A run: its curves, under way": f"curves?run={tab.growing}&width=1200",
        "Compare: sweeps to choose": "sweeps?count=200", "Compare: rows to choose": f"sweeps/{sweep}/table?count=200&long_form=1",
        "Compare: runs to choose": f"runs?limit=200&sweep={sweep}", "Compare: two rows": f"compare?a={sweep}/i%3D0&b={sweep}/i%3D1&first=0&count=50&max_points=300",
        "Compare: two runs": f"compare?a={runs[0]}&b={runs[-1]}&first=0&count=50&max_points=300",
        "Compare: two sweeps": f"compare?a={sweep}&b=made-0&first=0&count=50",
        "Tables: the papers'": "papers", "Tables: one of them": f"sweeps/{sweep}/table?count=1000&long_form=1",
        "Tables: its file, at a scale": "papers/msf?table=table-1&scale=demo",
        "Queue": "queue", "Workers": "workers", "New sweep: schema": "schema", "New sweep: checked": ("Validate", {"file": {"path": "new.yaml", "text": file}}),
        "New sweep: planned": ("Plan", {"file": {"path": "new.yaml", "text": file}}), "Settings: who you are": "whoami",
        "Settings: tokens": ("ListTokens", {}), "Settings: audit": ("ListAudit", {"who": "", "what": "", "before": "0", "most": 51}), "Settings: what is kept": "retention",
        "For scripts: metrics": f"metrics?{curves[20]}&name=loss&max_points=500", "For scripts: the API described": "/api",
    }


def expect_all(tab, reads):
    """Stops where the server has an address that nobody is asked for here."""
    of_server = [path for path in tab.json("/api")["paths"] if path.startswith("/api/v1/") and not path.startswith("/api/v1/actions/")]
    asked = ["/api/v1/" + path.split("?")[0] for path in reads.values() if isinstance(path, str)] + ["/api/v1/events"]  # a tab's, all the time
    for path in of_server:
        if not any(re.fullmatch(re.sub(r"\{[^}]*\}", "[^/]+", path), one) for one in asked):
            sys.exit(f"bench.py: nothing reads {path}, which the server has: add it to reads_of")


def dashboard(bench, figures):
    """Reads one after the other, p95 of each, and a browser, of each store; then the peers."""
    for name, store in stores(bench).items():
        with Home(bench.work, "dashboard") as home:
            begun = time.monotonic()
            make_store(home, store.sweeps, store.trials, 0.9, store.points, FAILED)
            figures.add(SERVER, "  making the store", "s", store.name, time.monotonic() - begun)
            home.start_scheduler()  # without a worker, so that what trains is the first of the queue, and the others wait
            emit = [sys.executable, str(HERE / "emit.py"), str(POINTS_A_SECOND)]
            growing = home.write_sweep("growing", emit, 10, columns="{name: loss, metric: train/loss}")
            home.ablate("submit", growing, "--priority", 10, "--json")
            home.ablate("submit", home.write_sweep("other", ["/bin/true"], 1000), "--json")
            home.ablate("submit", write_search(home, 20 if bench.quick else 200), "--json")
            home.stop("scheduler")
            home.up("--slots", 1, "--allow-commands")
            growing = home.until(lambda: home.ask("SELECT r.id FROM run r JOIN sweep_trial st ON st.trial_id = r.trial_id JOIN sweep s ON "
                                                  "s.id = st.sweep_id WHERE s.name = 'growing' AND r.state = 'running'"), "points come in")[0][0]
            sweep = f"made-{store.sweeps - 1}"
            measure(bench, figures, home, store, sweep, growing)
            if bench.browser and store.browser:
                in_browser(bench, figures, BROWSER, store.name, {
                    "side": "ablate", "url": home.url, "sweep": sweep, "growing": "growing", "run": growing,
                    "repetitions": 2 if bench.quick else 10, "seconds": 3 if bench.quick else 20})
                figures.add(SERVER, "  most memory of the scheduler, also by the browser", "MiB", store.name, memory_mib(home.scheduler, "VmHWM"))
    figures.remark(f"dashboard: trials × points × metrics, 9 of 10 completed; measured while {POINTS_A_SECOND:,} points a second are stored; targets: "
                   "p95 of each read under 100 ms, under 50 kB/s and 5 % of a core for an open tab, under 300 MB for the scheduler; first contentful "
                   "paint under 0.3 s (in a tab whose process runs already), the table drawn within 0.3 s at 2,000 trials and 1 s at 100,000; sort, filter, brush under 100 ms")
    if bench.peers:
        import peers
        peers.peers(bench, figures)


def write_search(home, trials):
    file = home.folder / "searched.yaml"
    file.write_text("ablate: 1\nname: searched\ncommand: {argv: [/bin/true], params: {x: 0.5, n: 3}, version: \"1\"}\n"
                    "search:\n  over: {params.x: {min: 0, max: 1}, params.n: {min: 1, max: 9, integer: true}}\n"
                    f"  trials: {trials}\n  metric: loss\n  better: lower\n")
    return file


def measure(bench, figures, home, store, sweep, growing):
    tab = Tab(home.url)
    tab.growing = growing
    tab.probed = home.ask("SELECT run_id FROM probe ORDER BY run_id LIMIT 1")[0][0]
    first, _ = tab.read(page_of(sweep)[1])
    figures.add(SERVER, "its table, the first time that anybody asks", "ms", store.name, first * 1e3)
    reads = reads_of(tab, store, sweep)
    expect_all(tab, reads)
    for name, path in reads.items():
        ask = (lambda path=path: tab.read(path)) if isinstance(path, str) else (lambda path=path: tab.act(*path))
        times = [ask()[0] for _ in range(10 if bench.quick else 40)]
        figures.add(SERVER, f"{name}: p95", "ms", store.name, statistics.quantiles(times, n=20)[-1] * 1e3)
        figures.add(SERVER, f"  {name}: whole", "kB", store.name, len(tab.content) / 1e3)
    times = []
    for row in range(round(store.trials * FAILED))[:40]:  # which are of the last seed: each makes a row of the table anew
        tab.act("RetrySweep", {"sweep": sweep, "row": f"i={row}", "seed": "9"})
        times.append(tab.read(page_of(sweep)[1])[0])
    if len(times) > 1:
        figures.add(SERVER, "its table, after each change of a trial: p95", "ms", store.name, statistics.quantiles(times, n=20)[-1] * 1e3)
    seconds = 5 if bench.quick else 20
    for way, again in ("whole answers", False), ("what changed", True):
        looked = Tab(home.url)
        for path in page_of("growing"):
            looked.read(path, again)
        looked.bytes = 0
        for _ in range(seconds):
            for path in page_of("growing"):
                looked.read(path, again)
            time.sleep(1)
        figures.add(SERVER, f"a tab on a sweep that trains, {way}", "kB/s", store.name, looked.bytes / seconds / 1e3)
    points = home.ask("SELECT SUM(count) FROM metric_summary WHERE run_id = ?", growing)[0][0]
    time.sleep(2)
    figures.add(SERVER, "  points stored meanwhile", "1/s", store.name, (home.ask("SELECT SUM(count) FROM metric_summary WHERE run_id = ?", growing)[0][0] - points) / 2)
    figures.add(SERVER, "  most memory of the scheduler", "MiB", store.name, memory_mib(home.scheduler, "VmHWM"))


def in_browser(bench, figures, part, size, what):
    """What browser.mjs says of a page, into a part of the figures. Returns: whether all of it could be done."""
    done = subprocess.run(["node", str(HERE / "browser.mjs"), json.dumps(what)], capture_output=True, text=True, timeout=3600)
    if done.returncode != 0:
        figures.remark(f"{part}, {size}: {(done.stderr.strip().splitlines() or ['node ended'])[-1]}")
        return False
    whole = True
    for line in map(json.loads, done.stdout.splitlines()):
        if "chromium" in line:
            figures.remark(f"in a browser: Chromium {line['chromium']}, headless, without a GPU")
        elif "not" in line:
            figures.remark(f"{part}, {size}: {line['what']} was not measured: {line['not']}")
            whole = False
        else:
            figures.add(part, line["what"], line["unit"], size, line["value"])
    return whole
