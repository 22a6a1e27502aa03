# SPDX-License-Identifier: Apache-2.0
"""Three machines that ssh reaches, which are sshds on 127.0.0.2 to 4 with a home each, and a scheduler with TLS and tokens: a bundle is
copied and started while trials wait; a machine whose key nobody knows is refused; an sshd stops and a worker is killed under their runs, the
scheduler is started again; workers go when nothing waits. Needs Debian's openssh-server."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import stat
import subprocess
import time

from access import free_port
from fleet import BIN, Fleet, expect, say, skip

SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
TOKEN = re.compile("abl_[0-9a-f]{12}_")

PROGRAM = """
import json, sys, time
time.sleep(float(sys.argv[2]))
print(json.dumps({"event": "metric", "step": 1, "values": {"acc": int(sys.argv[1])}}), flush=True)
"""

SWEEP = """
ablate: 1
name: {name}
command: {{argv: [python3, "{home}/program.py", "{{params.i}}", "{seconds}"], params: {{i: 0}}, version: "1"}}
factors: {{params.i: {rows}}}
seeds: 1
resources: {{where: {{queue: {queue}}}}}
table: {{columns: [{{name: acc, metric: acc}}]}}
"""

FLEET = """
scheduler: {scheduler}
ca: {home}/fleet/ca.crt
queues:
  desk:
    launcher: ssh
    hosts: [w1, w2, {{host: w3, slots: 1}}]
    bundle: bundle.tar.gz
    ssh_config: ssh_config
    home: "my ablate"
    idle_timeout: 2s
    cool_down: 1s
    min_utilisation: 0
    allow_commands: true
  installed:
    launcher: ssh
    hosts: [w1]
    program: {program}
    ssh_config: ssh_config
    home: "{home}/it's installed"
    time_limit: 1h
    idle_timeout: 2s
    min_utilisation: 0
    allow_commands: true
    worker_arguments: [--trainer, {home}/none]
"""

SSHD_CONFIG = """
ListenAddress 127.0.0.{number}
Port {port}
HostKey {folder}/host_key
PidFile none
AuthorizedKeysFile {home}/user_key.pub
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
ForceCommand cd '{folder}/home' && HOME='{folder}/home' exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"
"""

SSH_CONFIG = """
Host {name}
  HostName 127.0.0.{number}
  Port {port}
  IdentityFile {home}/user_key
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile {home}/known_hosts
  GlobalKnownHostsFile none
  StrictHostKeyChecking yes
"""


def run(*argv):
    return subprocess.run(list(map(str, argv)), text=True, capture_output=True, timeout=60, stdin=subprocess.DEVNULL, check=True).stdout


def key(file):
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", file)


def below(pid):
    """The processes that a process has started, and those that they have."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        try:
            children = (task / "children").read_text().split()
        except OSError:
            children = []
        for child in map(int, children):
            found += [child, *below(child)]
    return found


class Machine:
    """An sshd with a home, an address and a key of its own."""

    def __init__(self, fleet, number):
        self.name, self.number = f"w{number}", number + 1
        self.folder = fleet.home / self.name
        (self.folder / "home").mkdir(parents=True)
        with socket.create_server((f"127.0.0.{self.number}", 0)) as taken:
            self.port = taken.getsockname()[1]
        key(self.folder / "host_key")
        places = dict(number=self.number, port=self.port, folder=self.folder, home=fleet.home, name=self.name)
        (self.folder / "sshd_config").write_text(SSHD_CONFIG.format(**places))
        with open(fleet.home / "ssh_config", "a") as config:
            config.write(SSH_CONFIG.format(**places))
        self.known = f"[127.0.0.{self.number}]:{self.port} {(self.folder / 'host_key.pub').read_text()}"
        self.sshd = None

    def start(self):
        log = open(self.folder / "sshd.log", "ab")
        self.sshd = subprocess.Popen([SSHD, "-D", "-e", "-f", self.folder / "sshd_config"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and self.sshd.poll() is None:
            with socket.socket() as client:
                if client.connect_ex((f"127.0.0.{self.number}", self.port)) == 0:
                    return self
            time.sleep(0.1)
        self.stop()
        skip(f"sshd does not come up here: {(self.folder / 'sshd.log').read_text(errors='replace')[-1000:]}")

    def stop(self):
        """With its connections: the machine is off the network, what runs there goes on."""
        if self.sshd is None:
            return
        for pid in below(self.sshd.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.sshd.kill()
        self.sshd.wait()
        self.sshd = None

    def pilots(self, places=("home/my ablate",)):
        return [file for place in places for file in (self.folder / place).glob("*/pilots/*/pilot.pid")]

    def workers(self):
        """Those that live, by their process ids."""
        alive = []
        for file in self.pilots():
            pid = int(file.read_text().split()[0])
            try:
                if f"{file.parent}".encode() in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                    alive.append(pid)
            except OSError:
                pass
        return alive


def submit(fleet, name, rows, seconds, queue="desk"):
    file = fleet.home / f"{name}.yaml"
    file.write_text(SWEEP.format(name=name, home=fleet.home, rows=list(range(rows)), seconds=seconds, queue=queue))
    fleet.ablate("submit", file)


def completed(fleet, sweep):
    return lambda: all(trial["state"].endswith("COMPLETED") for trial in fleet.trials(sweep))


def queue_of(fleet, name="desk"):
    return next(queue for queue in fleet.json("fleet").get("queues", []) if queue["name"] == name)


def pilots(fleet, name="desk"):
    return queue_of(fleet, name).get("pilots", [])


def events(fleet):
    return [event.get("text", "") for event in fleet.json("fleet").get("events", [])]


def said(fleet, text):
    return lambda: [event for event in events(fleet) if text in event]


def main():
    if not SSHD or not shutil.which("ssh"):
        skip("sshd: not installed (deploy/setup.sh --tests installs openssh-server)")
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)  # sshd wants it where root starts it
    machines = []
    with Fleet("ssh") as fleet:
        try:
            key(fleet.home / "user_key")
            machines += [Machine(fleet, number) for number in (1, 2, 3)]
            w1, w2, w3 = machines
            (fleet.home / "known_hosts").write_text(w1.known + w2.known)
            for machine in machines:
                machine.start()
            everything(fleet, w1, w2, w3)
        except BaseException:
            for log in sorted(fleet.home.glob("w*/home/my ablate/*/pilots/*/worker.log")):
                print(f"---- {log}\n{log.read_text(errors='replace')[-2000:]}")
            raise
        finally:
            for name in list(fleet.processes):
                fleet.stop(name)
            for machine in machines:
                for pid in machine.workers():
                    os.kill(pid, signal.SIGKILL)
                machine.stop()


def everything(fleet, w1, w2, w3):
    machines = (w1, w2, w3)
    (fleet.home / "program.py").write_text(PROGRAM)
    trainer = fleet.home / "none"
    trainer.write_text("#!/bin/sh\nexit 1\n")
    trainer.chmod(0o755)
    fleet.ablate("bundle", "--without-trainer", "--out", fleet.home / "bundle.tar.gz")
    address = f"127.0.0.1:{free_port()}"
    fleet.ablate("init-fleet", "--name", "head", "--store", fleet.store)
    fleet_file = fleet.home / "fleet.yaml"
    fleet_file.write_text(FLEET.format(scheduler=address, program=BIN / "ablate-worker", home=fleet.home))
    options = ("--fleet", fleet_file, "--listen", address, "--tls-certificate", fleet.home / "fleet" / "server.crt",
               "--tls-key", fleet.home / "fleet" / "server.key")

    say("a dry run says what it would do")
    fleet.start_scheduler(*options, "--fleet-dry-run")
    submit(fleet, "first", 6, 1)
    fleet.until(said(fleet, "would submit 2 pilots"), "it says so")
    expect(not any(machine.pilots() for machine in machines), "and nothing is done")
    fleet.stop("scheduler")

    say("from no worker to a finished sweep, on the two machines whose keys are known")
    fleet.start_scheduler(*options)
    fleet.until(completed(fleet, "first"), "the sweep is finished")
    refused = fleet.until(said(fleet, "w3 does not answer"), "w3 is refused")
    expect("Host key verification failed" in refused[0], f"a key that nobody knows is no key: {refused[0]}")
    expect(w1.pilots() and w2.pilots() and not w3.pilots(), "the two have worked, the third was not touched")
    folders = list(w1.folder.glob("home/my ablate/*/bundles/*"))
    expect(len(folders) == 1 and re.fullmatch("[0-9a-f]{16}", folders[0].name), f"a bundle by its digest: {folders}")
    expect(stat.S_IMODE(folders[0].parents[1].stat().st_mode) == 0o700, "in a folder of its owner alone")

    fleet.until(lambda: not [file for machine in machines for file in machine.folder.glob("home/my ablate/*/pilots/*/join.token")],
                "no join token lies about once its worker has joined")
    own = [file for machine in machines for file in machine.folder.glob("home/my ablate/*/pilots/*/token")]
    expect(own and all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in own), "a worker's own token is its owner's alone")
    logs = [*fleet.home.glob("*.log"), *fleet.home.glob("*.json"), *fleet.home.glob("w*/sshd.log"), *fleet.home.glob("w*/home/**/worker.log")]
    shown = run("ps", "-eo", "args") + "".join(file.read_text(errors="replace") for file in logs)
    expect(not TOKEN.search(shown), "no token is in an argument or a log")

    say("workers go when nothing waits")
    fleet.until(lambda: not pilots(fleet), "no pilot is left")
    expect(not any(machine.workers() for machine in machines), "their processes have ended")

    say("an sshd stops and a worker is killed under their runs, the scheduler is started again")
    with open(fleet.home / "known_hosts", "a") as known:
        known.write(w3.known)
    submit(fleet, "second", 5, 4)
    fleet.until(lambda: w1.workers() and w2.workers(), "two machines work")
    fleet.until(lambda: sum(bool(pilot.get("busy")) for pilot in pilots(fleet)) >= 2, "two trials run")
    w2.stop()
    for pid in w1.workers():
        os.kill(pid, signal.SIGKILL)
    fleet.stop("scheduler")
    expect(w2.workers(), "a worker outlives sshd and scheduler")
    fleet.start_scheduler(*options)
    fleet.until(said(fleet, "w2 does not answer"), "the machine that does not answer is said")
    w2.start()
    fleet.until(said(fleet, "w2 answers again"), "and that it answers again")
    fleet.until(completed(fleet, "second"), "the sweep is finished")
    expect(len(list(w1.folder.glob("home/my ablate/*/bundles/*"))) == 1, "the bundle was copied once")

    say("workers of programs that are installed")
    submit(fleet, "third", 2, 0.5, "installed")
    fleet.until(completed(fleet, "third"), "the sweep is finished")
    expect(list(fleet.home.glob("it's installed/*/pilots/*/worker.log")), "in a folder whose name has a quote")

    say("workers go, and so do their tokens")
    fleet.until(lambda: not pilots(fleet) and not pilots(fleet, "installed"), "no pilot is left")
    fleet.until(lambda: not any(machine.workers() for machine in machines), "no worker is left")
    tokens = [token for token in fleet.json("token", "ls")["tokens"] if token.get("made_by") != "init-fleet"]
    expect(len(tokens) >= 6, f"{len(tokens)} tokens were made, by fleet")
    say("done")


main()
