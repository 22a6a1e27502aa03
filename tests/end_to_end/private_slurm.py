# SPDX-License-Identifier: Apache-2.0
"""A Slurm of one's own on this machine: for the test of pilots, and for what measures them. Needs root, slurmctld, slurmd and munge."""
import os
import shutil
import socket
import subprocess
import time

from fleet import skip

PATH = os.environ["PATH"] + ":/usr/sbin"

CONF = """
ClusterName=ablate
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={home}/munge.sock
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool/%n
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0,sched_min_interval=0
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 RealMemory=500
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2 RealMemory=500
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Slurm:
    """munged, slurmctld and two slurmds in a folder and on ports of their own."""

    def __init__(self, fleet):
        self.fleet = fleet
        self.home = fleet.home / "slurm"
        for folder in (self.home, self.home / "state", self.home / "spool"):
            folder.mkdir()
        for folder in (fleet.home, self.home):
            folder.chmod(0o755)  # munged wants its socket's folder open to those who ask
        self.conf = self.home / "slurm.conf"
        key = self.home / "munge.key"
        key.write_bytes(os.urandom(64))
        key.chmod(0o400)
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
        ports = [taken.getsockname()[1] for taken in sockets]
        for taken in sockets:
            taken.close()
        self.conf.write_text(CONF.format(host=socket.gethostname().split(".")[0], home=self.home, ports=ports))
        fleet.environment["SLURM_CONF"] = str(self.conf)
        fleet.environment["PATH"] = PATH
        self.daemons = {}

    def __enter__(self):
        self.start("munged", "--foreground", "--force", f"--socket={self.home}/munge.sock", f"--key-file={self.home}/munge.key",
                   f"--pid-file={self.home}/munged.pid", f"--log-file={self.home}/munged.log", f"--seed-file={self.home}/munged.seed")
        self.wait(lambda: (self.home / "munge.sock").exists(), "munged")
        self.start("slurmctld", "-D", "-f", self.conf)
        for node in ("n1", "n2"):
            self.start(f"slurmd-{node}", "-D", "-N", node, "-f", self.conf, program="slurmd")
        self.wait(lambda: self.run("sinfo", "--noheader", "--format=%D %t").stdout.strip() == "2 idle", "two idle nodes")
        return self

    def __exit__(self, kind, *_):
        for name in list(self.daemons)[::-1]:
            self.stop(name)
        if kind is not None:
            for log in sorted(self.home.glob("*.out")):
                print(f"---- {log.name}\n{log.read_text(errors='replace')[-3000:]}")
            for log in sorted(self.fleet.home.glob("pilots/*/worker.log")):
                print(f"---- {log}\n{log.read_text(errors='replace')[-2000:]}")

    def start(self, name, *argv, program=None):
        log = open(self.home / f"{name}.out", "ab")
        self.daemons[name] = subprocess.Popen([shutil.which(program or name, path=self.fleet.environment["PATH"]), *map(str, argv)],
                                              env=self.fleet.environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def stop(self, name):
        daemon = self.daemons.pop(name)
        daemon.terminate()
        try:
            daemon.wait(10)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def run(self, *argv):
        return subprocess.run(list(map(str, argv)), env=self.fleet.environment, text=True, capture_output=True, timeout=30)

    def wait(self, condition, what):
        deadline = time.monotonic() + 30
        while not condition():
            if time.monotonic() > deadline:
                logs = "".join(f"\n{log.name}: {log.read_text(errors='replace')[-1500:]}" for log in sorted(self.home.glob("*.out")))
                self.__exit__(None)
                skip(f"Debian's Slurm does not come up here: no {what} in 30 s{logs}")
            time.sleep(0.2)

    def jobs(self):
        return [line.split("|") for line in self.run("squeue", "--noheader", "--format=%i|%j|%T|%N").stdout.splitlines()]


def why_not():
    """What is missing here; empty: nothing."""
    missing = [program for program in ("slurmctld", "slurmd", "munged", "sbatch") if not shutil.which(program, path=PATH)]
    if missing:
        return f"{', '.join(missing)}: not installed (deploy/setup.sh --tests installs Slurm)"
    return "a Slurm of one's own needs root" if os.geteuid() != 0 else ""
