# SPDX-License-Identifier: Apache-2.0
"""What deploy/Containerfile puts into an image, as a root file system: scheduler and worker start by the entry point as a user without
rights who may write nowhere but in the folder of results, run a trial, and answer the health check. No container runtime is asked."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

from access import free_port
from bundle import mount
from fleet import BIN, SOURCE, Fleet, expect, say, skip

USER = 10001
TOOLS = ("sh", "curl")  # of the image's base, beside glibc

SWEEP = """ablate: 1
name: in-the-image
command: {argv: [/bin/sh, -c, "echo '{\\"event\\": \\"metric\\", \\"step\\": 1, \\"values\\": {\\"acc\\": {params.i}}}'"], params: {i: 1}, version: "1"}
factors: {params.i: [1, 2]}
seeds: 1
table: {columns: [{name: acc, metric: acc}]}
"""


def copy_with_libraries(program, root):
    target = root / "usr/bin" / program
    target.parent.mkdir(parents=True, exist_ok=True)
    source = pathlib.Path(shutil.which(program)).resolve()
    shutil.copy(source, target)
    for line in subprocess.run(["ldd", source], capture_output=True, text=True).stdout.splitlines():
        for word in line.split():
            if word.startswith("/"):
                library = root / word.lstrip("/")
                library.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(word, library)


def base(root):
    """Of Debian as much as the image's programs use."""
    for link in ("bin", "lib", "lib64"):
        (root / "usr" / link).mkdir(parents=True)
        (root / link).symlink_to(f"usr/{link}")
    for tool in TOOLS:
        copy_with_libraries(tool, root)
    for program in ("ablate", "ablate-scheduler", "ablate-worker"):  # glibc's, whatever else is of the bundle
        for line in subprocess.run(["ldd", BIN / program], capture_output=True, text=True).stdout.splitlines():
            for word in line.split():
                if word.startswith("/") and any(f"/{name}.so" in word for name in ("libc", "libm", "libmvec", "libresolv", "libpthread", "librt", "libdl", "ld-linux-x86-64")):
                    shutil.copy(word, root / word.lstrip("/"))
    for name in ("proc", "dev", "tmp", "run"):
        (root / name).mkdir()
    (root / "tmp").chmod(0o1777)
    mount("--rbind", "/proc", root / "proc")
    for name in ("null", "urandom"):
        (root / "dev" / name).touch()
        mount("--bind", f"/dev/{name}", root / "dev" / name)


def alone():
    """Begins again with mounts and processes of its own, as in a container. Returns: whether it may."""
    if "ABLATE_ALONE" in os.environ:
        return True
    own = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run([*own, "chroot", f"--userspec={USER}:{USER}", "/", "true"], capture_output=True).returncode != 0:
        return False
    sys.stdout.flush()
    os.execvpe(own[0], [*own, sys.executable, *sys.argv], dict(os.environ, ABLATE_ALONE="1"))


def main():
    if not alone():
        skip("a root file system, processes and a user of one's own need root")
    with Fleet("image") as fleet:
        fleet.home.chmod(0o755)
        archive, root = fleet.home / "all.tar", fleet.home / "root"
        fleet.ablate("bundle", "--of", "all", "--without-trainer", "--out", archive)
        said = subprocess.run([SOURCE / "deploy/image-root.sh", __file__, root], capture_output=True, text=True)
        expect(said.returncode != 0, "what is no bundle is no image")
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        base(root)
        subprocess.run([SOURCE / "deploy/image-root.sh", archive, root], check=True)
        try:
            in_image(fleet, root)
        finally:
            for name in list(fleet.processes):
                fleet.stop(name)
            for place in (root / "dev/null", root / "dev/urandom", root / "proc"):
                subprocess.run(["umount", "--recursive", "--lazy", str(place)], check=True)


def in_image(fleet, root):
    inside = ["/usr/bin/env", "-i", "PATH=/usr/local/bin:/usr/bin", "ABLATE_HOME=/var/lib/ablate", "/usr/sbin/chroot", f"--userspec={USER}:{USER}", root,
              "/usr/local/bin/ablate-image"]

    def run(*words, **more):
        return subprocess.run([*map(str, inside[:2]), *(f"{name}={value}" for name, value in more.items()), *map(str, [*inside[2:], *words])],
                              capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)

    expect(run("ablate", "--version").stdout.startswith("ablate "), "the entry point runs any program")
    expect("ablate" in run().stdout, "and says what there is where it is not told which")
    expect(run("/bin/sh", "-c", "echo x >/usr/local/bin/x").returncode != 0, "its user writes nowhere")
    port = free_port()
    fleet.start("scheduler", *map(str, inside), "scheduler", "--listen", "unix:/var/lib/ablate/run/scheduler.sock", "--http-port", port)
    url = f"http://127.0.0.1:{port}/healthz"
    fleet.until(lambda: run("health", ABLATE_HEALTH_URL=url).returncode == 0, "the scheduler is healthy")
    expect('"status":"ok"' in run("health", ABLATE_HEALTH_URL=url).stdout, "as /healthz says")
    expect(run("health", ABLATE_HEALTH_URL=f"http://127.0.0.1:{free_port()}/healthz").returncode != 0, "where nobody answers it is not")
    expect((root / "var/lib/ablate/results.db").stat().st_uid == USER, "its results file is the image's user's")
    fleet.start("worker", *map(str, inside), "worker", "--scheduler", "unix:/var/lib/ablate/run/scheduler.sock", "--name", "one", "--slots", "1",
                "--home", "/var/lib/ablate/worker", "--allow-commands")
    (root / "tmp/sweep.yaml").write_text(SWEEP)
    told = run("ablate", "submit", "/tmp/sweep.yaml", ABLATE_SCHEDULER="unix:/var/lib/ablate/run/scheduler.sock")
    expect(told.returncode == 0, f"a sweep is submitted: {told.stdout}{told.stderr}")
    show = lambda: json.loads(run("ablate", "show", "in-the-image", "--json", ABLATE_SCHEDULER="unix:/var/lib/ablate/run/scheduler.sock").stdout)
    fleet.until(lambda: show()["summary"]["state"] == "SWEEP_STATE_COMPLETED", "the worker of the image has run its trials", 60)
    fleet.stop("scheduler")
    expect(run("health", ABLATE_HEALTH_URL=url).returncode == 0, "a worker that runs is healthy")
    fleet.stop("worker")
    said = run("health", ABLATE_HEALTH_URL=url)
    expect(said.returncode == 1 and "neither a scheduler nor a worker" in said.stderr, "one that is gone is not")
    say("done")


if __name__ == "__main__":
    sys.exit(main())
