# SPDX-License-Identifier: Apache-2.0
"""Backup and restore, rm, rename, rerun, where and gc, with the real programs, while a scheduler and a worker run."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from fleet import BIN, Fleet, expect, say

# Says one value, leaves two checkpoints, and may wait for a file.
PROGRAM = """
import json, os, pathlib, sys, time
folder = pathlib.Path(os.environ["ABLATE_RUN_DIR"])
def tell(**event):
    print(json.dumps(event), flush=True)
print("it begins", flush=True)
for step in (1, 2, 3):
    file = folder / f"state-{step}.bin"
    file.write_bytes(b"x" * 1000 * step)
    tell(event="checkpoint", step=step, path=file.name, sha256="0" * 64)
tell(event="metric", step=3, values={"acc": float(sys.argv[1])})
gate = pathlib.Path(sys.argv[2])
while not gate.exists():
    time.sleep(0.02)
"""

SWEEP = """ablate: 1
name: NAME
command: {argv: [PYTHON, PROGRAM, "{params.x}", GATE], params: {x: 1}, reuse: true, version: "1"}
rows: [ROWS]
seeds: [0, 1]
table: {columns: [{name: acc, metric: acc}]}
"""


class Home:
    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ablate-operations-"))
        self.home = self.folder / "home"
        self.store = self.home / "results.db"
        self.gate = self.folder / "open"
        self.shut = self.folder / "shut"
        self.gate.touch()
        self.program = self.folder / "program.py"
        self.program.write_text(PROGRAM)
        self.environment = dict(os.environ, ABLATE_HOME=str(self.home), NO_COLOR="1")

    def ablate(self, *argv, code=0, store=None):
        command = [str(BIN / "ablate"), *map(str, argv), *(["--store", str(store)] if store else [])]
        done = subprocess.run(command, env=self.environment, text=True, capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
        if done.returncode != code:
            raise AssertionError(f"{' '.join(command[1:])}: {done.returncode} and not {code}\n{done.stdout}{done.stderr}")
        self.said = done.stdout
        return done.stdout + done.stderr

    def json(self, *argv, **more):
        self.ablate(*argv, "--json", **more)
        return json.loads(self.said)

    def file(self, name, rows, gate=None):
        text = SWEEP.replace("NAME", name).replace("PYTHON", sys.executable).replace("PROGRAM", str(self.program))
        text = text.replace("GATE", str(gate or self.gate))
        text = text.replace("ROWS", ", ".join(f"{{id: {row}, set: {{params.x: {value}}}}}" for row, value in rows.items()))
        path = self.folder / f"{name}.yaml"
        path.write_text(text)
        return path

    def run(self, name, rows):
        self.ablate("submit", self.file(name, rows), "--watch")

    def up(self):
        self.ablate("up", "--detach", "--slots", 2, "--allow-commands")

    def until(self, what, ask, timeout=60):
        end = time.monotonic() + timeout
        while not ask():
            expect(time.monotonic() < end, what)
            time.sleep(0.05)
        say(what)

    def runs(self):
        return {int(path.parent.name): path for path in (self.home / "runs").glob("*/1")}

    def trials(self, sweep):
        return {(trial["row"], int(trial["seed"])): trial for trial in self.json("show", sweep)["trials"]}


def rename_and_rerun(home):
    home.run("first", {"a": 1, "b": 2})
    home.ablate("rename", "first", "second words", code=2)
    home.ablate("rename", "first", "renamed")
    expect("renamed" in home.ablate("ls"), "it is listed under its new name")
    home.ablate("show", "first", code=2)
    # the file with its new name is this sweep; with the old one it is another, which shares every trial
    expect(home.json("submit", home.file("renamed", {"a": 1, "b": 2})).get("created", False) is False, "the file with its new name is this sweep")
    shared = home.json("submit", home.file("first", {"a": 1, "b": 2}))
    expect(shared["shared_trials"] == 4 and shared["new_trials"] == 0, "the file with its old name shares its trials")
    before = home.trials("renamed")
    expect("2 new trials" in home.ablate("rerun", "renamed", "a"), "the row's trials run again")
    home.ablate("watch", "renamed")
    after, others = home.trials("renamed"), home.trials("first")
    expect(all(after["a", seed]["id"] != before["a", seed]["id"] for seed in (0, 1)), "by new trials")
    expect(all(after["b", seed]["id"] == before["b", seed]["id"] for seed in (0, 1)), "of this row alone")
    expect(all(others["a", seed]["id"] == before["a", seed]["id"] for seed in (0, 1)), "and the other sweep keeps its results")
    home.ablate("rerun", "renamed", "nothing", code=2)


def where(home):
    run = home.trials("renamed")["b", 0]["run"]
    said = home.json("where", run)
    expect(said["here"] and pathlib.Path(said["directory"]).is_dir(), "a run's folder is found")
    expect([point["bytes"] for point in said["checkpoints"]] == [1000, 2000, 3000] or
           [point["bytes"] for point in said["checkpoints"]] == [3000, 2000, 1000], "and its checkpoints with their sizes")
    expect({row["sweep"] for row in said["sweeps"]} == {"first", "renamed"}, "and the sweeps that show it")
    text = home.ablate("where", "renamed/b/0")
    expect(f"cd {said['directory']}" in text and f"ablate logs {run}" in text, "and the way there")
    expect(home.json("where", run, store=home.store)["directory"] == said["directory"], "also in the file")


def remove(home):
    home.ablate("rm", "first", code=2)  # nobody can be asked
    home.ablate("rm", "first", "--yes")
    home.ablate("show", "first", code=2)
    expect(len(home.trials("renamed")) == 4, "what another sweep shows stays")
    again = home.json("submit", home.file("first", {"a": 1, "b": 2}))
    expect(again["created"], "the file can be submitted again")
    home.ablate("watch", "first")

    home.shut.unlink(missing_ok=True)
    home.ablate("submit", home.file("slow", {"s": 3}, gate=home.shut))
    home.until("its trials run", lambda: home.json("ls", "slow")["sweeps"][0]["trials"].get("running", 0) == 2)
    watching = subprocess.Popen([str(BIN / "ablate"), "watch", "slow"], env=home.environment, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)
    expect("ablate cancel slow" in home.ablate("rm", "slow", "--yes", code=2), "what runs is not removed")
    home.ablate("pause", "slow")
    home.ablate("cancel", "slow")
    home.ablate("rm", "slow", "--yes")
    watching.communicate(timeout=60)
    home.ablate("show", "slow", code=2)
    home.run("gone", {"g": 7, "h": 8})
    home.shut.touch()


def watch_ends(home):
    home.shut.unlink(missing_ok=True)
    home.ablate("submit", home.file("watched", {"s": 4}, gate=home.shut))
    home.until("its trials run", lambda: home.json("ls", "watched")["sweeps"][0]["trials"].get("running", 0) == 2)
    watching = subprocess.Popen([str(BIN / "ablate"), "watch", "watched"], env=home.environment, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)
    watching.stdout.readline()
    home.ablate("rename", "watched", "seen")
    said, _ = watching.communicate(timeout=60)
    expect(watching.returncode == 1 and "watched was renamed: it is now seen" in said, f"who watches hears of it: {said}")
    home.shut.touch()
    home.ablate("watch", "seen")


def collect(home):
    folders = len(home.runs())
    home.ablate("rm", "gone", "--yes")
    stray = home.home / "runs" / "9000" / "1"
    stray.mkdir(parents=True)
    (stray / "file").write_bytes(b"x" * 5000)
    (stray / ".store").write_text(next(iter(home.runs().values())).joinpath(".store").read_text())
    outside = home.folder / "outside"
    outside.mkdir()
    (outside / "precious").write_text("kept")
    (home.home / "runs" / "9001").symlink_to(outside)
    expect("nothing to remove" in home.ablate("gc"), "what is new stays by itself")
    dry = home.json("gc", "--older-than", "0s", "--verbose")
    kinds = {kind["kind"]: kind["count"] for kind in dry["kinds"]}
    expect(kinds.get("unknown", 0) >= 5 and stray.exists(), f"a dry run says what would go, folders of removed trials among it: {kinds}")
    expect(str(stray) in dry["paths"], "with paths")
    run = home.json("where", "renamed/b/0")
    paths = {point["step"]: point["path"] for point in run["checkpoints"]}
    expect(paths[1] in dry["paths"] and paths[2] not in dry["paths"], "of a completed run all checkpoints but two go")
    policy = home.folder / "policy"
    policy.write_text("# what we keep\nkeep-checkpoints = 1\nolder-than = 0s\nonly = checkpoints\n")
    home.ablate("gc", "--policy", policy, "--yes")
    expect(not pathlib.Path(paths[2]).exists() and pathlib.Path(paths[3]).exists(), "a policy file says how many stay")
    expect(stray.exists(), "and what goes")
    policy.write_text("keep-checkpoint = 1\n")
    expect("did you mean 'keep-checkpoints'" in home.ablate("gc", "--policy", policy, code=2), "a wrong key is named")
    others = home.folder / "others" / "7" / "1"
    others.mkdir(parents=True)
    foreign = home.ablate("gc", "--older-than", "0s", "--runs-root", others.parents[1], "--yes")
    expect("without the id of a results file" in foreign and others.exists(), "a folder that may be another's stays")
    (others / ".store").write_text("f" * 32)
    foreign = home.ablate("gc", "--older-than", "0s", "--runs-root", others.parents[1], "--only", "unknown", "--yes")
    expect("of another results file" in foreign and others.exists(), "and one that is another's in any case")
    home.ablate("gc", "--older-than", "0s", "--yes")
    expect(not stray.exists() and (outside / "precious").exists(), "links are not followed")
    expect(0 < len(home.runs()) < folders, "runs that a sweep shows keep their folders")
    expect("nothing to remove" in home.ablate("gc", "--older-than", "0s"), "then there is nothing more")


def backup_and_restore(home):
    copy = home.folder / "copy.db"
    made = home.json("backup", copy)
    expect(made["sweeps"] == 3 and copy.stat().st_mode & 0o777 == 0o600, f"a copy beside the running scheduler: {made}")
    expect("--force" in home.ablate("backup", copy, code=2), "it replaces nothing")
    home.ablate("backup", copy, "--force")
    expect("renamed" in home.ablate("ls", store=copy), "the copy is a results file")
    home.run("later", {"l": 5})
    expect("ablate down" in home.ablate("restore", copy, code=3), "nothing is restored under a scheduler")
    home.ablate("down")
    said = home.ablate("restore", copy)
    expect("1 sweep: later" in said and "2 runs" in said, f"it says what the copy lacks: {said}")
    kept = list(home.home.glob("results.db.before-restore-*"))
    expect(len(kept) == 1 and "later" in home.ablate("ls", store=kept[0]), "what was there is kept")
    broken = home.folder / "broken.db"
    data = bytearray(copy.read_bytes())
    data[4096 * 5:4096 * 9] = b"x" * 4096 * 4
    broken.write_bytes(data)
    expect("damaged" in home.ablate("restore", broken, code=2), "a damaged copy is refused")
    expect("renamed" in home.ablate("ls") and "later" not in home.ablate("ls"), "and what is there stays")
    home.up()
    home.run("later", {"l": 6})
    table = home.json("table", "later")
    expect(table["rows"][0]["cells"][0]["mean"] == 6, "runs of numbers that were given before have their own results")


def a_worker_from_the_future(home):
    """It has runs that a restored file does not know, or knows as others."""
    with Fleet("restored") as fleet:
        fleet.start_scheduler()
        fleet.start_worker("w", "--slots", 2, "--allow-commands")
        fleet.ablate("submit", home.file("before", {"b": 1}))
        fleet.wait_for("before", 60)
        copy = fleet.home / "copy.db"
        fleet.ablate("backup", copy)
        home.shut.unlink(missing_ok=True)
        fleet.ablate("submit", home.file("future", {"f": 5}, gate=home.shut))
        fleet.until(lambda: len([trial for trial in fleet.trials("future") if trial["state"] == "TRIAL_STATE_RUNNING"]) == 2,
                    "runs of the future are under way", 60)
        expect(fleet.ablate("restore", copy, check=False).returncode == 3, "nothing is restored under a scheduler without 'up' either")
        fleet.stop("scheduler")
        said = fleet.json("restore", copy)
        expect(said["newer"]["sweeps"] == ["future"] and said["newer"]["under_way"] == 2, f"it says what was under way: {said['newer']}")
        fleet.start_scheduler()
        fleet.ablate("submit", home.file("other", {"o": 6}))
        fleet.wait_for("other", 60)
        table = fleet.json("table", "other")
        expect(table["rows"][0]["cells"][0]["n"] == 2 and table["rows"][0]["cells"][0]["mean"] == 6, "new runs of their numbers have their own results")
        fleet.until(lambda: not any(str(home.shut) in command for command in commands()), "the programs of the future are stopped", 60)
        expect(fleet.json("gc", "--older-than", "0s", "--only", "unknown")["kinds"][0]["count"] == 2, "their folders are known as nobody's")


def commands():
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                yield pathlib.Path(f"/proc/{entry}/cmdline").read_text(errors="replace")
            except OSError:
                pass


def main():
    home = Home()
    try:
        home.up()
        for part in (rename_and_rerun, where, remove, watch_ends, collect, backup_and_restore, a_worker_from_the_future):
            say(part.__name__)
            part(home)
    finally:
        subprocess.run([str(BIN / "ablate"), "down"], env=home.environment, capture_output=True, timeout=100)
    shutil.rmtree(home.folder, ignore_errors=True)
    say("done")


if __name__ == "__main__":
    sys.exit(main())
