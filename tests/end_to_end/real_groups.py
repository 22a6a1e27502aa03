# SPDX-License-Identifier: Apache-2.0
"""Bounds of a run's memory and processes, held by a kernel: with this machine's own tree of cgroup v2 where that has the controllers,
otherwise in a kernel beside it that runs as a program on the same files (User-mode Linux, Debian's user-mode-linux)."""
import ctypes
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

from confined import unified_tree
from fleet import expect, say, skip

HERE = pathlib.Path(__file__).resolve().parent
POWER_OFF = 0x4321FEDC
ENOUGH = 800  # seconds: each system call of a program in there costs several out here


def controllers(tree):
    return set((tree / "cgroup.controllers").read_text().split()) if tree else set()


def inside():
    """The first process of the other kernel: mounts what programs expect, runs the test, says how it ended and switches off."""
    folder = pathlib.Path(sys.argv[2])
    code = 1
    try:
        for kind, place in (("proc", "/proc"), ("sysfs", "/sys"), ("cgroup2", "/sys/fs/cgroup"), ("tmpfs", "/tmp")):
            subprocess.run(["mount", "-t", kind, kind, place], check=True)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        pathlib.Path("/sys/fs/cgroup/cgroup.subtree_control").write_text("+memory +pids")
        with open(folder / "log", "wb") as log:
            environment = dict(os.environ, PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", HOME="/tmp", TMPDIR="/tmp")
            code = subprocess.run([sys.executable, str(HERE / "confined.py"), "groups"], env=environment, stdin=subprocess.DEVNULL, stdout=log,
                                  stderr=log).returncode
    finally:
        (folder / "code").write_text(str(code))
        os.sync()
        ctypes.CDLL(None).reboot(POWER_OFF)


def main():
    if os.geteuid() != 0:
        skip("only root can start programs as another user")
    tree = unified_tree()
    if {"memory", "pids"} <= controllers(tree) and os.access(tree, os.W_OK):
        sys.exit(subprocess.run([sys.executable, str(HERE / "confined.py"), "groups"]).returncode)
    kernel = shutil.which("linux.uml", path=os.environ.get("ABLATE_UML", "") + ":" + os.environ["PATH"])
    if not kernel:
        skip("cgroup v2 has no controllers memory and pids here, and there is no linux.uml (Debian: user-mode-linux)")
    with tempfile.TemporaryDirectory(prefix="ablate-kernel-", dir="/var/tmp") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        init = folder / "init"
        variables = "\n".join(f"export {key}={shlex.quote(os.environ[key])}" for key in ("ABLATE_BIN", "ABLATE_SOURCE"))
        init.write_text(f"#!/bin/sh\n{variables}\nexec {sys.executable} {HERE / 'real_groups.py'} inside {folder}\n")
        init.chmod(0o755)
        command = [kernel, "mem=1024M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw", f"init={init}", "con=null", "con0=null,fd:1",
                   "quiet"]
        console = subprocess.run(command, cwd=folder, env=dict(os.environ, HOME=name), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, timeout=ENOUGH).stdout.decode(errors="replace")
        if not (folder / "code").exists():
            skip(f"{kernel} does not run here: {console.strip().splitlines()[-1:]}")
        print((folder / "log").read_text(errors="replace"))
        say(f"in the kernel of {kernel}")
        expect((folder / "code").read_text() == "0" and "are not tried" not in (folder / "log").read_text(), "runs are bounded by the kernel")


if __name__ == "__main__":
    inside() if sys.argv[1:2] == ["inside"] else main()
