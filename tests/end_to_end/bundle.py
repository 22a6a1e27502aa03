# SPDX-License-Identifier: Apache-2.0
"""A worker of a bundle, on a machine that has glibc and nothing else, takes the place of an installed one while a trial runs."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

from fleet import Fleet, expect, say

SWEEP = """ablate: 1
name: replaced
base:
  model:  {family: simple-vit, dim: 32, depth: 2, heads: 2, dim_head: 16, patch: 4}
  data:   {name: shapes, train_images: 1000, val_images: 50}
  recipe: {use: demo, epochs: 40, batch: 10}
rows: [{id: only, set: {}}]
seeds: [0]
table: {baseline: only, columns: [{name: acc, metric: val/top1}]}
"""
GLIBC = ("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libc.so.6", "libm.so.6", "libmvec.so.1", "libpthread.so.0", "libdl.so.2",
         "librt.so.1", "libresolv.so.2", "libutil.so.1")

DEVICES = ("null", "urandom")
SEEN = ("run", "box", "runs")  # of the folder of the test


def run(*words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300, check=True, **options).stdout


def in_own_mounts():
    """Whether what this program mounts is seen by itself alone: it begins again in a namespace of its own where it may have one."""
    if "ABLATE_OWN_MOUNTS" in os.environ:
        return True
    own = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    try:
        if subprocess.run([*own, "mount", "-t", "tmpfs", "tmpfs", tempfile.gettempdir()], capture_output=True).returncode != 0:
            return False
    except FileNotFoundError:
        return False
    sys.stdout.flush()
    os.execvpe(own[0], [*own, sys.executable, *sys.argv], dict(os.environ, ABLATE_OWN_MOUNTS="1"))


def mount(*words):
    subprocess.run(["mount", *map(str, words)], check=True)


def bare_machine(folder):
    """A tree with glibc alone."""
    for name in GLIBC:
        for place in pathlib.Path("/lib").glob(f"*-linux-gnu/{name}"):
            target = folder / place.relative_to("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(place, target)
            if name.startswith("ld-linux"):
                loader = folder / ("lib64" if "x86" in name else "lib") / name
                loader.parent.mkdir(exist_ok=True)
                shutil.copy(place, loader)
    for name in ("proc", "dev", "tmp"):
        (folder / name).mkdir()
    mount("--rbind", "/proc", folder / "proc")
    for name in DEVICES:
        (folder / "dev" / name).touch()
        mount("--bind", f"/dev/{name}", folder / "dev" / name)


def same_bytes(fleet):
    first, second = fleet.home / "first.tar.gz", fleet.home / "second.tar.gz"
    told = [json.loads(fleet.ablate("bundle", "--without-trainer", "--out", file, "--json").stdout) for file in (first, second)]
    expect(first.read_bytes() == second.read_bytes(), "the same programs give the same bundle, byte for byte")
    expect(told[0]["build"] == told[1]["build"] and told[0]["device"] == "commands", f"of one build: {told[0]['build']}")
    said = fleet.ablate("bundle", "--without-trainer", "--out", first, check=False)
    expect(said.returncode == 2 and "--force" in said.stderr, "a file that is there stays")
    said = fleet.ablate("bundle", "--out", fleet.home / "bundle.zip", check=False)
    expect(said.returncode == 2 and ".tar.gz" in said.stderr, "and another kind of archive is not written")


def unpacked(fleet, folder):
    """Packs worker and trainer, and unpacks them as people do. Returns: their folder."""
    archive = fleet.home / "whole.tar"
    told = json.loads(fleet.ablate("bundle", "--out", archive, "--json").stdout)
    say(f"{told['name']}: {told['unpacked_bytes'] >> 20} MiB, {told['libraries']} libraries, glibc {told['glibc']}, build {told['build']}")
    with tarfile.open(archive) as tar:
        members = tar.getmembers()
    expect(len({member.mtime for member in members}) == 1 and not any(member.uid or member.gid for member in members),
           "nothing of the time and the user that packed it is in it")
    run("tar", "xf", archive, "-C", folder)
    archive.unlink()
    bundle = folder / told["name"]
    run("sha256sum", "--check", "--quiet", "SHA256SUMS", cwd=bundle)
    manifest = json.loads((bundle / "manifest.json").read_text())
    expect({file["path"] for file in manifest["files"]} | {"manifest.json", "SHA256SUMS"} ==
           {str(file.relative_to(bundle)) for file in bundle.rglob("*") if file.is_file()}, "the manifest names every file, and the sums are right")
    expect(re.fullmatch(r"2\.\d+", manifest["needs"]["glibc"]) and (bundle / "LICENSE").exists() and any((bundle / "licences").iterdir()),
           "it says which glibc it needs, and brings the licences")
    return bundle


def replaced_while_a_trial_runs(fleet, worker):
    options = ("--slots", 1, "--threads", 1)
    fleet.start_scheduler()
    fleet.start_worker("box", *options)
    (fleet.home / "sweep.yaml").write_text(SWEEP)
    fleet.ablate("submit", fleet.home / "sweep.yaml")
    first = fleet.until(lambda: fleet.running("replaced"), "the trial runs on the installed worker")
    fleet.stop("scheduler")
    fleet.start_scheduler()
    fleet.until(lambda: fleet.trials("replaced")[0]["step"] > first["step"], "the scheduler is another one, and the run goes on")
    expect(fleet.trials("replaced")[0]["run"] == first["run"], "a scheduler that was replaced has the run as before")
    fleet.stop("box")
    fleet.until(lambda: fleet.trials("replaced")[0]["state"] == "TRIAL_STATE_QUEUED", "the worker stops, and the trial is in the queue again")
    # nothing of this environment, no library path, another folder
    fleet.start("bundled", "/usr/bin/env", "-i", "ABLATE_CHECKPOINT_SECONDS=1", *worker, "--scheduler", fleet.address,
                "--home", fleet.home / "box", "--name", "box", "--runs-root", fleet.home / "runs", *options)
    fleet.wait_for("replaced")
    trial = fleet.trials("replaced")[0]
    expect(trial["state"] == "TRIAL_STATE_COMPLETED" and trial["attempt"] == first["attempt"] + 1, "the worker of the bundle completes it")
    value = fleet.json("why", "replaced", "only", "acc")["values"][0]["run"]
    expect(value.get("resumed_from_step", value["summary"].get("resumed_from_step", 0)) > 0, "from the checkpoint of the one before")


def main():
    alone = in_own_mounts()
    with Fleet("bundle") as fleet:
        same_bytes(fleet)
        machine = fleet.home / "machine"
        machine.mkdir()
        bundle = unpacked(fleet, machine)
        if not alone:
            say("this machine allows no mounts: the bundle's worker runs without the libraries of LD_LIBRARY_PATH alone")
            return replaced_while_a_trial_runs(fleet, [bundle / "bin/ablate-worker"])
        bare_machine(machine)
        home = machine / fleet.home.relative_to("/")
        home.mkdir(parents=True)
        for name in SEEN:
            (fleet.home / name).mkdir(exist_ok=True)
            (home / name).mkdir()
            mount("--bind", fleet.home / name, home / name)
        try:
            inside = pathlib.Path("/") / bundle.relative_to(machine)
            chroot = ["/usr/sbin/chroot", machine]
            said = run("/usr/bin/env", "-i", *chroot, inside / "bin/ablate-worker", "--version")
            expect(re.match(r"\d+\.\d+", said), f"with glibc alone the worker starts: {said.strip()}")
            said = run("/usr/bin/env", "-i", *chroot, inside / "bin/ablate-trainer", "--version")
            expect("PyTorch" in said, f"and the trainer: {said.strip()}")
            told = json.loads(fleet.ablate("bundle", "--of", "cli", "--out", fleet.home / "cli.tar.gz", "--json").stdout)
            run("tar", "xf", fleet.home / "cli.tar.gz", "-C", machine)
            said = run("/usr/bin/env", "-i", *chroot, pathlib.Path("/") / told["name"] / "bin/ablate", "--version")
            expect(re.fullmatch(r"ablate-cli-[\d.]+-\w+", told["name"]) and said.startswith("ablate ") and not told["trainer"] and told["bytes"] < 40 << 20,
                   f"and the command line alone, of a bundle of its own: {told['name']}, {told['bytes'] >> 20} MiB")
            said = run("/usr/bin/env", "-i", "HOME=/tmp", *chroot, pathlib.Path("/") / told["name"] / "bin/ablate", "papers", "msf")
            expect("msf/table-1" in said, "which has the papers' tables")
            for library in ("libgomp.so.1", "libc10.so", "libfmt.so.9", "libstdc++.so.6"):
                (machine / "tmp" / library).write_text("of another PyTorch")
            said = run("/usr/bin/env", "-i", "LD_LIBRARY_PATH=/tmp", *chroot, inside / "bin/ablate-trainer", "--version")
            expect("PyTorch" in said, "whatever libraries LD_LIBRARY_PATH names")
            replaced_while_a_trial_runs(fleet, [*chroot, inside / "bin/ablate-worker"])
        finally:
            for name in list(fleet.processes):
                fleet.stop(name)
            for place in (*(home / name for name in SEEN), *(machine / "dev" / name for name in DEVICES), machine / "proc"):
                subprocess.run(["umount", "--recursive", "--lazy", str(place)], check=True)


if __name__ == "__main__":
    sys.exit(main())
