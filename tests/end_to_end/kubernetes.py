# SPDX-License-Identifier: Apache-2.0
"""Workers from Kubernetes, as far as that can be seen without a cluster: an API server of this test's own, which speaks as much of the
protocol as the launcher asks for and runs each pod as a process, in the right order at first and then with what goes wrong: a connection that
is cut after the object was created (and 409 for the second try), a list whose continuation has expired (410), a token that was exchanged
(401), slow answers, garbage, a node that is lost."""
import http.server
import json
import os
import re
import secrets
import shutil
import signal
import ssl
import subprocess
import threading
import time
import urllib.parse

from access import free_port
from fleet import BIN, Fleet, expect, say, skip

TOKEN = re.compile("abl_[0-9a-f]{12}_")

SWEEP = """
ablate: 1
name: {name}
command: {{argv: [sh, -c, 'until [ -e {go} ]; do sleep 0.2; done; echo "{{\\"event\\":\\"metric\\",\\"step\\":1,\\"values\\":{{\\"acc\\":1}}}}"'], params: {{i: 0}}, version: "1"}}
factors: {{params.i: {rows}}}
seeds: 1
table: {{columns: [{{name: acc, metric: acc}}]}}
"""

FLEET = """
scheduler: {scheduler}
ca: {home}/fleet/ca.crt
kubernetes: {{server: "https://127.0.0.1:{port}", service_account: {home}/account}}
queues:
  pods:
    launcher: kubernetes
    workers: {{max: 2}}
    time_limit: 1h
    idle_timeout: 3s
    cool_down: 3s
    cpus: 2
    memory: 1G
    slots: 2
    min_utilisation: 0
    allow_commands: true
    image: registry.invalid/ablate:1
    volumes: {{work: {home}/pods}}
    node_selector: {{pool: cpu}}
    tolerations: [reserved]
    program: {program}
    home: {home}/pods
    worker_arguments: [--trainer, {home}/none]
"""


class Cluster:
    """What the API server has, and the processes that stand for pods."""

    def __init__(self, home, environment):
        self.home, self.environment = home, environment
        self.lock = threading.RLock()
        self.jobs, self.pods, self.secrets, self.processes = {}, {}, {}, {}
        self.faults, self.done, self.seen = set(), [], []
        self.doomed = []  # what becomes of the next pods: "evicted" by their node, or "broken"
        self.account = home / "account"
        self.account.mkdir()
        (self.account / "namespace").write_text("research\n")
        shutil.copy(home / "fleet" / "ca.crt", self.account / "ca.crt")
        self.new_token()
        self.expired = set()

    def new_token(self):
        self.token = secrets.token_hex(16)
        file = self.account / "token.new"
        file.write_text(self.token)
        file.rename(self.account / "token")

    def fault(self, name):
        with self.lock:
            if name not in self.faults:
                return False
            self.faults.remove(name)
            self.done.append(name)
            return True

    def start(self, job):
        name, spec = job["metadata"]["name"], job["spec"]["template"]["spec"]
        folder = self.home / "mounts" / name
        folder.mkdir(parents=True)
        for key, value in self.secrets.get(name, {}).get("stringData", {}).items():
            (folder / key).write_text(value)
            (folder / key).chmod(0o440)
        command = [word.replace("/var/run/ablate", str(folder)) for word in spec["containers"][0]["command"]]
        doom = self.doomed.pop(0) if self.doomed else None
        if doom:
            command = ["/bin/sh", "-c", "exit 1"]
        self.processes[name] = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL,
                                                stdout=open(self.home / f"{name}.out", "ab"), stderr=subprocess.STDOUT, start_new_session=True)
        self.pods[name] = {"metadata": {**job["spec"]["template"]["metadata"], "name": f"{name}-x1"}, "spec": {"nodeName": "node-1"},
                           "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}],
                                      "startTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}}
        if doom == "evicted":
            self.pods[name]["status"]["reason"] = "Evicted"

    def look(self):
        """Processes that have ended are pods that have."""
        for name, process in self.processes.items():
            pod, job = self.pods.get(name), self.jobs.get(name)
            if process.poll() is None:
                if pod:
                    pod["status"]["phase"] = "Running"
                continue
            if job is None:
                self.pods.pop(name, None)
            elif pod and pod["status"]["phase"] not in ("Succeeded", "Failed"):
                good = process.returncode == 0
                pod["status"].update(phase="Succeeded" if good else "Failed",
                                     containerStatuses=[{"state": {"terminated": {"exitCode": process.returncode}}}])
                job["status"] = {"conditions": [{"type": "Complete" if good else "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}

    def lose_node(self):
        """Of one pod: it is gone without a word."""
        with self.lock:
            name = next(name for name, process in self.processes.items() if process.poll() is None)
            os.killpg(self.processes[name].pid, signal.SIGKILL)
            self.processes[name].wait()
            del self.pods[name]
            self.jobs[name]["status"] = {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}
            return name

    def end(self):
        for process in self.processes.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


class Handler(http.server.BaseHTTPRequestHandler):
    cluster = None
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, document):
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def status(self, code, reason, message):
        self.answer(code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code})

    def admitted(self):
        cluster = self.cluster
        if cluster.fault("401"):
            cluster.new_token()
        if self.headers.get("Authorization") != f"Bearer {cluster.token}":
            self.status(401, "Unauthorized", "Unauthorized")
            return False
        return True

    def body(self):
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")

    def place(self):
        url = urllib.parse.urlsplit(self.path)
        parts = url.path.strip("/").split("/")
        at = parts.index("namespaces")
        assert parts[at + 1] == "research", self.path
        return parts[at + 2], parts[at + 3] if len(parts) > at + 3 else None, dict(urllib.parse.parse_qsl(url.query))

    def do_GET(self):
        cluster = self.cluster
        kind, name, query = self.place()
        cluster.seen.append(("GET", kind))
        if not self.admitted():
            return
        if cluster.fault("slow"):
            time.sleep(4)
        if cluster.fault("garbage"):
            return self.answer(200, b"<html>a proxy's page</html>")
        assert name is None and kind in ("jobs", "pods"), self.path  # what RBAC in deploy/kubernetes allows
        label, _, value = query["labelSelector"].partition("=")
        with cluster.lock:
            cluster.look()
            items = [each for _, each in sorted((cluster.jobs if kind == "jobs" else cluster.pods).items())
                     if each["metadata"]["labels"].get(label) == value]
        begin = int(query.get("continue", "0"))
        if begin and cluster.fault("410"):
            return self.status(410, "Expired", "The provided continue parameter is too old")
        rest = {"continue": str(begin + 1)} if len(items) > begin + 1 else {}
        self.answer(200, {"kind": "List", "metadata": {"resourceVersion": "7", **rest}, "items": items[begin:begin + 1]})

    def do_POST(self):
        cluster = self.cluster
        kind, _, _ = self.place()
        document = self.body()
        cluster.seen.append(("POST", kind))
        if not self.admitted():
            return
        name = document["metadata"]["name"]
        kept = {"jobs": cluster.jobs, "secrets": cluster.secrets}[kind]
        with cluster.lock:
            if name in kept:
                cluster.done.append("409")
                return self.status(409, "AlreadyExists", f'{kind} "{name}" already exists')
            kept[name] = document
            if kind == "jobs":
                cluster.start(document)
        if cluster.fault("cut"):
            self.close_connection = True
            return self.connection.close()
        self.answer(201, document)

    def do_DELETE(self):
        cluster = self.cluster
        kind, name, _ = self.place()
        self.body()
        cluster.seen.append(("DELETE", kind))
        if not self.admitted():
            return
        with cluster.lock:
            kept = {"jobs": cluster.jobs, "secrets": cluster.secrets}[kind]
            if kept.pop(name, None) is None:
                return self.status(404, "NotFound", f'{kind} "{name}" not found')
            process = cluster.processes.get(name)
            if kind == "jobs" and process and process.poll() is None:
                process.terminate()
        self.answer(200, {"kind": "Status", "status": "Success"})


def submit(fleet, name, rows, go="/"):
    """Its trials run until there is a file `go`."""
    file = fleet.home / f"{name}.yaml"
    file.write_text(SWEEP.format(name=name, rows=list(range(rows)), go=go))
    fleet.ablate("submit", file)


def completed(fleet, sweep):
    return lambda: all(trial["state"] == "TRIAL_STATE_COMPLETED" for trial in fleet.trials(sweep))


def pilots(fleet):
    return fleet.json("fleet")["queues"][0].get("pilots", [])


def events(fleet):
    return "\n".join(event.get("text", "") for event in fleet.json("fleet").get("events", []))


def main():
    if not shutil.which("curl"):
        skip("curl is not installed")
    with Fleet("kubernetes") as fleet:
        fleet.ablate("init-fleet", "--name", "gpu-head", "--store", fleet.store)
        none = fleet.home / "none"
        none.write_text("#!/bin/sh\nexit 1\n")
        none.chmod(0o755)
        Handler.cluster = cluster = Cluster(fleet.home, fleet.environment)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(fleet.home / "fleet" / "server.crt", fleet.home / "fleet" / "server.key")
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            run(fleet, cluster, server.server_address[1])
        finally:
            cluster.end()
            server.shutdown()


def run(fleet, cluster, port):
    address = f"127.0.0.1:{free_port()}"
    fleet_file = fleet.home / "fleet.yaml"
    fleet_file.write_text(FLEET.format(scheduler=address, home=fleet.home, port=port, program=BIN / "ablate-worker"))
    options = ("--fleet", fleet_file, "--listen", address, "--tls-certificate", fleet.home / "fleet" / "server.crt", "--tls-key",
               fleet.home / "fleet" / "server.key", "--fleet-list-ms", 1000)
    fleet.start_scheduler(*options)

    say("from no pod to a finished sweep, and to none again")
    submit(fleet, "first", 4)
    fleet.until(completed(fleet, "first"), "the sweep is finished")
    job = next(iter(cluster.jobs.values()))
    pod = job["spec"]["template"]["spec"]
    expect(pod["nodeSelector"] == {"pool": "cpu"} and pod["automountServiceAccountToken"] is False and job["spec"]["backoffLimit"] == 0, "as the fleet file says")
    expect(all(not TOKEN.search(json.dumps(each)) for each in cluster.jobs.values()), "no token in a job")
    fleet.until(lambda: not pilots(fleet) and not cluster.pods, "workers go when nothing waits")
    fleet.until(lambda: not cluster.secrets, "and the secrets with them")

    say("with what goes wrong")
    cluster.faults = {"cut", "401", "slow"}
    go = fleet.home / "go"
    submit(fleet, "second", 4, go)
    fleet.until(lambda: sum(pilot.get("busy", False) for pilot in pilots(fleet)) == 2, "both workers run")
    expect({"cut", "409", "401", "slow"} <= set(cluster.done), f"a cut connection, an exchanged token, a slow answer: {cluster.done}")
    expect(len([each for each in cluster.processes.values() if each.poll() is None]) == 2, "and no pod twice")
    cluster.faults = {"410"}
    fleet.until(lambda: "410" in cluster.done, "a list begins anew")
    cluster.faults = {"garbage"}
    fleet.until(lambda: "cannot list pilots, keeping what was known" in events(fleet), "garbage says nothing of pilots")
    fleet.until(lambda: "pilots can be listed again" in events(fleet), "and passes")
    expect(len(pilots(fleet)) == 2, "which are known as before")

    say("a node is lost, and the scheduler started again")
    lost = cluster.lose_node()
    fleet.until(lambda: lost[-12:] not in [pilot["id"] for pilot in pilots(fleet)], "its pilot is gone")
    fleet.stop("scheduler")
    fleet.start_scheduler(*options)
    go.touch()
    fleet.until(completed(fleet, "second"), "its trials were run elsewhere")
    fleet.until(lambda: not pilots(fleet) and not cluster.pods, "no pod is left")

    say("pods that are evicted before their workers begin are nobody's fault, programs that fail are the queue's")
    paused = lambda: fleet.json("fleet")["queues"][0].get("paused", "")
    cluster.doomed = ["evicted"] * 4
    submit(fleet, "third", 2)
    fleet.until(completed(fleet, "third"), "the sweep is finished by pods after those")
    expect(not cluster.doomed and not paused(), "four pods came to nothing, and the queue goes on")
    fleet.until(lambda: not pilots(fleet), "no pilot is left")
    cluster.doomed = ["broken"] * 3
    submit(fleet, "fourth", 2)
    why = fleet.until(paused, "the queue pauses itself")
    expect("3 pilots in a row came to nothing" in why and "exit code 1" in why, f"and says why: {why}")
    expect(not cluster.doomed, "after three")
    fleet.ablate("fleet", "resume", "pods")
    fleet.until(completed(fleet, "fourth"), "a person resumes it, and the sweep is finished")
    fleet.until(lambda: not pilots(fleet), "no pilot is left")
    expect(set(cluster.seen) <= {("GET", "jobs"), ("GET", "pods"), ("POST", "jobs"), ("POST", "secrets"), ("DELETE", "jobs"), ("DELETE", "secrets")},
           "and nothing else was asked for")


main()
