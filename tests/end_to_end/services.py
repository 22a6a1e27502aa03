# SPDX-License-Identifier: Apache-2.0
"""The units of deploy/, started by a systemd of the test's own as docs/administration.md says: it has processes, mounts, a network and a
root of its own, which is this machine's with what is written in memory. Skipped where there is no systemd, or it does not come up so."""
import os
import pathlib
import shutil
import subprocess
import time

from fleet import BIN, SOURCE, Fleet, expect, say, skip

BOOT = """
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs {home}
mkdir {home}/upper {home}/work {home}/root
mount -t overlay overlay -o lowerdir=/,upperdir={home}/upper,workdir={home}/work {home}/root
cd {home}/root
mount -t proc proc proc
mount --bind proc/sys proc/sys && mount -o remount,ro,bind proc/sys
mount --rbind /sys sys && mount -o remount,ro,bind sys
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs dev
for device in null zero full random urandom tty; do touch dev/$device; mount --bind /dev/$device dev/$device; done
mkdir dev/shm dev/pts
mount -t tmpfs tmpfs dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
if [ ! -e /sys/fs/cgroup/cgroup.controllers ]; then
  mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup
  mkdir sys/fs/cgroup/systemd
  mount -t cgroup -o none,name=systemd,xattr cgroup sys/fs/cgroup/systemd
fi
ip link set lo up
mkdir -p opt/ablate/bin srv old
cp {bin}/ablate {bin}/ablate-scheduler {bin}/ablate-worker opt/ablate/bin/
cp {deploy}/*.service {deploy}/*.conf srv/
for unit in systemd-networkd-wait-online NetworkManager-wait-online systemd-udevd systemd-sysctl systemd-firstboot; do
  ln -sf /dev/null etc/systemd/system/$unit.service
done
printf '[Unit]\\nDescription=a test\\nWants=dbus.socket\\n' >etc/systemd/system/ablate-test.target
grep -q localhost etc/hosts 2>/dev/null || echo 127.0.0.1 localhost >>etc/hosts
pivot_root . old
umount -l old
cd /
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin {systemd} --system --log-target=console --show-status=0 --unit=ablate-test.target
"""

AS_ABLATE = "runuser -u ablate -- env ABLATE_HOME=/var/lib/ablate PATH=/opt/ablate/bin:$PATH"
SCHEDULER = """
useradd --system --home-dir /var/lib/ablate --no-create-home ablate
install -d -m 0700 -o ablate -g ablate /var/lib/ablate
runuser -u ablate -- env ABLATE_HOME=/var/lib/ablate /opt/ablate/bin/ablate init-fleet --name localhost
cp /srv/ablate-scheduler.service /etc/systemd/system/
systemctl daemon-reload && systemctl enable --now ablate-scheduler
"""
WORKER = """
install -d -m 0700 -o ablate -g ablate /var/lib/ablate-worker
install -D -m 0644 /var/lib/ablate/fleet/ca.crt /etc/ablate/ca.crt
{ablate} ablate token create --role join --out /var/lib/ablate/join.token
install -m 0600 -o ablate -g ablate /var/lib/ablate/join.token /var/lib/ablate-worker/
printf 'ABLATE_SCHEDULER=localhost:7071\\nABLATE_WORKER_FLAGS=--slots 1 --trainer /bin/false\\n' >/etc/ablate/worker.env
useradd --system --no-create-home ablate-runs
cp /srv/ablate-worker.service /etc/systemd/system/
install -D -m 0644 /srv/ablate-worker-commands.conf /etc/systemd/system/ablate-worker.service.d/commands.conf
systemctl daemon-reload && systemctl enable --now ablate-worker
"""
SWEEP = """ablate: 1
name: who
command: {argv: [/bin/sh, -c, "id -un >&2; touch /srv/x || echo read-only >&2; sleep 1; echo '{\\"event\\": \\"metric\\", \\"step\\": 1, \\"values\\": {\\"acc\\": 1}}'"], version: "1"}
rows: [{id: only, set: {}}]
seeds: 1
table: {columns: [{name: acc, metric: acc}]}
"""


class Machine:
    def __init__(self, home, systemd):
        self.log = open(home / "boot.log", "ab")
        place = home / "place"
        place.mkdir()
        script = BOOT.format(home=place, bin=BIN, systemd=systemd, deploy=SOURCE / "deploy")
        self.process = subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--uts", "--ipc", "--net", "--cgroup", "--kill-child", "sh", "-c", script],
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def run(self, script, check=True):
        first = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        if not first:
            return subprocess.CompletedProcess([], 1, "", "systemd has ended")
        done = subprocess.run(["nsenter", "-t", first[0], "-m", "-p", "-u", "-i", "-n", "-C", "-r", "-w", "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                               "sh", "-ec", "cd /srv\n" + script], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
        if check and done.returncode != 0:
            raise AssertionError(f"{script}\nexit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def ablate(self, words, check=True):
        return self.run(f"{AS_ABLATE} ablate {words}", check).stdout

    def until(self, condition, what, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                said = self.run("journalctl --no-pager -u ablate-scheduler -u ablate-worker | tail -30", check=False).stdout
                raise AssertionError(f"waited {seconds} s in vain until {what}\n{said}")
            time.sleep(0.3)

    def end(self):
        self.process.kill()
        self.process.wait()


def main():
    systemd = next((place for place in ("/lib/systemd/systemd", "/usr/lib/systemd/systemd") if os.path.exists(place)), None)
    if os.geteuid() != 0 or not systemd or not all(map(shutil.which, ("useradd", "runuser", "nsenter", "ip", "systemctl"))):
        skip("a systemd of one's own needs systemd, root, useradd, nsenter and ip")
    with Fleet("services") as fleet:
        machine = Machine(fleet.home, systemd)
        try:
            deadline = time.monotonic() + 40
            while machine.run("systemctl is-active ablate-test.target", check=False).stdout.strip() != "active":
                if time.monotonic() > deadline or machine.process.poll() is not None:
                    skip(f"systemd does not come up in a namespace here: {(fleet.home / 'boot.log').read_text(errors='replace')[-1500:]}")
                time.sleep(0.3)
            if machine.run("systemd-run --wait -p PrivateDevices=yes -p ProtectSystem=strict -p PrivateTmp=yes true", check=False).returncode != 0:
                skip("systemd may not make namespaces for services here")
            services(machine)
        finally:
            machine.end()


def services(machine):
    pid = lambda unit: machine.run(f"systemctl show -p MainPID --value {unit}").stdout.strip()
    active = lambda unit: machine.run(f"systemctl is-active {unit}", check=False).stdout.strip() == "active"

    say("the scheduler, as docs/administration.md says")
    machine.run(SCHEDULER)
    expect(active("ablate-scheduler") and "tests" in machine.ablate("token create --role viewer --name tests --json"), "it answers as soon as its start is over")
    expect(machine.run(f"stat -c %U /proc/{pid('ablate-scheduler')}").stdout.strip() == "ablate", "it runs as its user")

    say("a worker of commands, which run as another user")
    machine.run(WORKER.format(ablate=AS_ABLATE))
    machine.until(lambda: "connected" in machine.ablate("workers"), "the worker has joined")
    machine.run(f"cat >/srv/sweep.yaml <<'END'\n{SWEEP}END\n{AS_ABLATE} ablate submit /srv/sweep.yaml")
    machine.until(lambda: "1/1" in machine.ablate("ls"), "its trial is over")
    said = machine.ablate("logs who/only/0")
    expect("ablate-runs" in said and "read-only" in said, f"as the unit says: {said.strip()}")

    say("one that dies is started again, one that is stopped ends by itself")
    first = pid("ablate-scheduler")
    machine.run(f"kill -9 {first}")
    machine.until(lambda: active("ablate-scheduler") and pid("ablate-scheduler") not in ("0", first), "another scheduler runs")
    machine.until(lambda: "not connected" not in machine.ablate("workers"), "its worker is there again")
    machine.run("systemctl stop ablate-worker")
    expect("success" in machine.run("systemctl show -p Result --value ablate-worker").stdout, "the worker heeds SIGTERM")
    machine.run("systemctl disable --now ablate-worker ablate-scheduler")
    expect(not active("ablate-scheduler"), "and both are gone")
    say("done")


main()
