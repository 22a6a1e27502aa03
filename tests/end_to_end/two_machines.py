# SPDX-License-Identifier: Apache-2.0
"""A sweep that two machines train a part of each: archived, imported, gone on with, brought back. And what archives are refused."""
import json
import shutil
import sys

from fleet import Fleet, expect, say, small_disk, with_mounts

SWEEP = """ablate: 1
name: halves
command:
  argv: [sh, -c, 'test {params.x} = 1 || until test -e GO; do sleep 0.05; done; echo "{\\"event\\":\\"metric\\",\\"step\\":1,\\"values\\":{\\"acc\\":{params.x}{seed}}}"']
  folder: "{run_dir}"
  params: {x: 1}
  version: "1"
  reuse: true
rows: [{id: quick}, {id: slow, set: {params.x: 2}}]
seeds: SEEDS
table:
  baseline: quick
  columns: [{name: acc, metric: acc}, {name: gain, expression: "acc - baseline.acc"}]
"""


def sweep_file(fleet, go, seeds=2):
    file = fleet.home / "halves.yaml"
    file.write_text(SWEEP.replace("GO", str(go)).replace("SEEDS", str(seeds)))
    return file


def counts(fleet):
    trials = fleet.json("show", "halves")["summary"]["trials"]
    return {state: trials[state] for state in ("total", "completed", "queued", "running")}


def a_part_is_trained(one, go):
    one.ablate("submit", sweep_file(one, go))
    one.start_worker("first", "--allow-commands", "--slots", 1)
    slow = one.until(lambda: next((t for t in one.trials("halves") if t["row"] == "slow" and t["state"] == "TRIAL_STATE_RUNNING"), None),
                     "a command that prints nothing is shown as running")
    value = next(v for v in one.json("why", "halves", "slow", "acc")["values"] if v["trial"] == slow["id"])
    expect(value["state"] == "TRIAL_STATE_RUNNING" and value["run"]["summary"].get("started"), "and why knows when its program was started")
    expect("took_seconds" not in value["run"]["summary"], "which took no time yet")
    one.ablate("pause", "halves", "--stop-running")
    one.until(lambda: counts(one)["running"] == 0, "it was stopped")
    one.stop("first")
    done = counts(one)
    expect(done["completed"] == 1 and done["total"] == 4, f"one of four is trained: {done}")
    took = one.json("why", "halves", "quick", "acc")["values"][0]["run"]["summary"]
    expect(0 <= took["took_seconds"] < 60, "a run says how long its program ran")


def the_rest_elsewhere(one, two, go):
    archive = one.home / "half.db"
    said = one.ablate("archive", "halves", "-o", archive, "--store", one.store).stdout
    expect("1 completed" in said and "who made it" in said and "--no-provenance" in said, "the archive says what travels")
    silent = json.loads(one.ablate("archive", "halves", "-o", one.home / "silent.db", "--store", one.store, "--no-provenance", "--json").stdout)
    expect(silent["submissions"] == 0, "or nothing does")
    merged = json.loads(two.ablate("import", archive, "--store", two.store, "--json").stdout)
    expect(merged["sweeps"] == ["halves"] and merged["runs"] >= 2, f"elsewhere it is there with its runs: {merged}")
    go.write_text("")
    two.start_scheduler()
    again = json.loads(two.ablate("submit", sweep_file(two, go), "--json").stdout)
    expect(not again["created"], "the same file is the same sweep")
    two.ablate("resume", "halves")
    two.start_worker("second", "--allow-commands", "--slots", 2)
    two.wait_for("halves")
    attempts = {(t["row"], t["seed"]): t["worker"] for t in two.trials("halves")}
    expect(attempts[("quick", "0")] == "first" and list(attempts.values()).count("second") == 3, f"the rest alone was trained: {attempts}")
    both = two.json("why", "halves", "slow", "gain")
    expect([p["name"] for p in both["parts"]] == ["acc", "baseline.acc"] and len(both["parts"][0]["values"]) == 2,
           "an expression says each seed's value of each part")
    text = two.ablate("why", "halves/slow/gain").stdout
    for words in ("acc - baseline.acc is made of", "whose mean every seed is held against", "of row"):
        expect(words in text, f"and people read {words!r}")


def and_back(one, two):
    whole = two.home / "whole.db"
    two.ablate("archive", "halves", "-o", whole, "--store", two.store)
    table = two.ablate("table", "halves", "--format", "csv").stdout
    one.stop("scheduler")
    merged = json.loads(one.ablate("import", whole, "--store", one.store, "--json").stdout)
    expect(merged["filled"] == 3 and merged["known"] == ["halves"], f"the three that waited have results: {merged}")
    expect(one.ablate("table", "halves", "--store", one.store, "--format", "csv").stdout == table, "and both have one table")
    expect(len(one.json("show", "halves", "--provenance", "--store", one.store)["provenance"]) >= 1, "with where it comes from")


def grown_elsewhere(one, two, go):
    two.ablate("extend", sweep_file(two, go, seeds=3), "--yes")
    two.wait_for("halves")
    grown = two.home / "grown.db"
    two.ablate("archive", "halves", "-o", grown, "--store", two.store)
    merged = json.loads(one.ablate("import", grown, "--store", one.store, "--json").stdout)
    expect(merged["grown"] == ["halves"] and merged["new_trials"] == 2, f"a sweep that was extended there is extended here: {merged}")
    expect(one.ablate("table", "halves", "--store", one.store, "--format", "csv").stdout == two.ablate("table", "halves", "--format", "csv").stdout,
           "with the same table")
    old = json.loads(two_store := one.ablate("import", two.home / "whole.db", "--store", one.store, "--json").stdout)
    expect(old["runs"] == 0 and any("extended here" in note for note in old["notes"]), f"an older archive changes nothing: {two_store}")
    return grown


def refusals(one, archive):
    whole = archive.read_bytes()

    def refused(file, words, *command):
        done = one.ablate(*(command or ("import", file, "--store", one.store)), check=False)
        lines = done.stderr.strip().splitlines()
        expect(done.returncode not in (0, -6, -11) and len(lines) == 1 and any(word in lines[0] for word in words), f"{file.name}: {lines}")

    at = whole.index(b"params.x")  # a bit of the sweep's text
    for name, content in (("flipped", whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:]),
                          ("cut", whole[:len(whole) // 2]), ("empty", b""), ("text", b"nothing of the kind\n" * 300)):
        file = one.home / f"{name}.db"
        file.write_bytes(content)
        words = {"flipped": ["damaged"], "cut": ["damaged", "malformed"], "empty": ["empty", "not a results file"], "text": ["not a"]}[name]
        refused(file, words)
        refused(file, words, "table", "halves", "--store", file)
    newer = one.home / "newer.db"
    shutil.copy(archive, newer)
    with open(newer, "r+b") as file:  # user_version of its header
        file.seek(60)
        file.write((99).to_bytes(4, "big"))
    for command in (("import", newer, "--store", one.store), ("table", "halves", "--store", newer), ("dashboard", "--store", newer)):
        refused(newer, ["written by a newer version"], *command)
    refused(one.home / "none.db", ["no such file", "does not exist", "not found"], "import", one.home / "none.db", "--store", one.store)


def disks(one, archive):
    with small_disk(one, "64k") as disk:
        done = one.ablate("archive", "halves", "-o", disk / "study.db", "--store", one.store, check=False)
        expect(done.returncode != 0 and len(done.stderr.strip().splitlines()) == 1 and ("no space" in done.stderr.lower() or "full" in done.stderr.lower()),
               f"a full disk: {done.stderr.strip()}")
        expect(list(disk.iterdir()) == [], "and nothing is left of it")


def main():
    mounts = with_mounts()
    with Fleet("machine-one") as one, Fleet("machine-two") as two:
        go = one.home / "go"
        one.start_scheduler()
        say("the first machine trains a part")
        a_part_is_trained(one, go)
        say("the second goes on")
        the_rest_elsewhere(one, two, go)
        say("and back")
        and_back(one, two)
        say("grown there")
        archive = grown_elsewhere(one, two, go)
        say("what is refused")
        refusals(one, archive)
        if mounts:
            disks(one, archive)
    say("done")


if __name__ == "__main__":
    sys.exit(main())
