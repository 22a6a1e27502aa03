# SPDX-License-Identifier: Apache-2.0
"""What those see who watch over the programs: /metrics, /healthz, logs as JSON, and `ablate doctor`."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import urllib.error
import urllib.request

from fleet import Fleet, expect, say

SWEEP = """ablate: 1
name: watched
command: {argv: [sh, -c, 'printf "{\\"event\\":\\"metric\\",\\"step\\":1,\\"values\\":{\\"acc\\":0.5}}\\n"; test {params.i} != 3'], params: {i: 0}}
rows: [{id: a, label: a, set: {params.i: 1}}, {id: b, label: b, set: {params.i: 2}}, {id: c, label: c, set: {params.i: 3}}]
seeds: [0, 1]
retry: {max: 0}
table: {columns: [{name: acc, metric: acc}]}
"""


def get(url, path):
    try:
        with urllib.request.urlopen(url + path, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def samples(url):
    status, text = get(url, "metrics")
    assert status == 200, text
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if not line.startswith("#")}


def lines_of(log):
    """Each line is an object, whoever wrote it."""
    return [json.loads(line) for line in log.read_text().splitlines()]


def check_metrics(fleet, url):
    fleet.until(lambda: samples(url)['ablate_runs_ended_total{state="completed"}'] == 4, "four runs are counted as completed")
    seen = samples(url)
    expect(seen['ablate_runs_ended_total{state="failed"}'] == 2, "two as failed")
    expect(seen["ablate_leases_granted_total"] == 6, "six leases were given")
    expect(seen["ablate_batch_points_total"] == 6 and seen["ablate_batches_total"] >= 6, "each run's batch and point is counted")
    expect(seen["ablate_batch_seconds_count"] == seen["ablate_batches_total"], "each was acknowledged")
    expect(seen["ablate_store_commits_total"] == seen["ablate_store_commit_seconds_count"] > 0, "commits are counted and measured")
    expect(seen['ablate_rpcs_total{method="ablate.v1.Sweeps/Submit",code="OK"}'] == 1, "and so are calls")
    idle = {'ablate_trials{state="leased"}': 0, 'ablate_workers{state="connected"}': 1, 'ablate_slots{state="free"}': 2}
    fleet.until(lambda: idle.items() <= samples(url).items(), "no trial is under way, and a worker of two slots is free")
    seen = samples(url)
    names = " ".join(seen)
    expect("watched" not in names and "first" not in names, "no sweep and no worker is a label")
    text = get(url, "metrics")[1]
    promtool = os.environ.get("PROMTOOL") or shutil.which("promtool")
    if promtool:
        done = subprocess.run([promtool, "check", "metrics"], input=text, text=True, capture_output=True)
        expect(done.returncode == 0, f"promtool has nothing to say of {text.count('# TYPE')} families {done.stdout}{done.stderr}")
    else:
        say("promtool is not here: it was not asked")


def check_logs(fleet):
    scheduler, worker = lines_of(fleet.home / "scheduler.log"), lines_of(fleet.home / "first.log")
    for line in scheduler + worker:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"]) and line["level"] in ("info", "warning", "error"), line
    expect(any(line.get("sweep") == "watched" for line in scheduler), "the scheduler's log names the sweep")
    ends = [line for line in scheduler if "the trial is" in line["message"]]
    expect(len(ends) == 6 and all(line["run"] and line["trial"] and line["attempt"] == 1 and line["worker"] == "first" for line in ends),
           "and of each run's end the run, trial, attempt and worker")
    expect({line["run"] for line in worker if "starts" in line["message"]} == {line["run"] for line in ends}, "the worker's has the same runs")


def process_of(program, home):
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            argv = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if argv[0].endswith(program) and str(home) in argv:
                return int(process.name)
    raise AssertionError(f"no {program} of {home} runs")


def check_up(fleet):
    """All that `up` starts, and itself."""
    home = fleet.home / "up"
    fleet.environment.pop("ABLATE_LOG_FORMAT")
    fleet.ablate("up", "--home", home, "--detach", "--slots", 1, "--log-format", "json")
    try:
        logs = {log.name: log for log in (home / "logs").iterdir()}
        expect(sorted(logs) == ["scheduler.log", "up.log", "worker.log"], "ablate up keeps three logs")
        os.kill(process_of("ablate-worker", home), signal.SIGKILL)
        fleet.until(lambda: any("ablate-worker" in line["message"] for line in lines_of(logs["up.log"])), "up says that it starts its worker anew")
    finally:
        fleet.ablate("down", "--home", home)
    seen = {name: lines_of(log) for name, log in logs.items()}
    expect(all(seen.values()), f"each line of them is an object: {({name: len(lines) for name, lines in seen.items()})}")


def files(folder):
    """Without what SQLite keeps beside a file that somebody reads."""
    return sorted((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in folder.rglob("*")
                  if file.is_file() and not file.name.endswith(("-shm", "-wal")))


def problems(report):
    return {f"{check['area']}/{check['check']}": check["message"] for check in report["checks"] if check["verdict"] == "problem"}


def doctor(fleet, *argv):
    done = fleet.ablate("doctor", "--json", *argv, check=False)
    report = json.loads(done.stdout)
    assert done.returncode == (1 if report["problems"] else 0), done
    assert len(problems(report)) == report["problems"], report
    return report


def check_doctor_alone(fleet):
    before = files(fleet.home)
    report = doctor(fleet, "--deep")
    ours = {check["check"]: check["verdict"] for check in report["checks"] if check["area"] == "store"}
    expect(ours["file"] == "ok" and ours["pages"] == "ok", "the doctor opens the results file and finds every page whole")
    expect(files(fleet.home) == before, "and leaves every file as it was")
    (fleet.home / "results.db.fleet.json").write_text("{}")
    (fleet.home / "results.db.v7.bak").write_text("")
    copies = next(check["message"] for check in doctor(fleet)["checks"] if check["check"] == "copies")
    expect("v7.bak" in copies and "fleet.json" not in copies and "depot" not in copies, f"what the scheduler keeps is no copy: {copies}")
    damaged = fleet.home / "damaged.db"
    shutil.copy(fleet.store, damaged)
    pages = sqlite3.connect(fleet.store).execute("SELECT rootpage FROM sqlite_master WHERE name = 'trial'").fetchone()
    with open(damaged, "r+b") as file:
        file.seek((pages[0] - 1) * 4096)
        file.write(b"\xff" * 4096)
    expect(any(check.startswith("store/") for check in problems(doctor(fleet, "--deep", "--store", damaged))), "a damaged page is a problem")
    damaged.write_text("no database " * 1000)
    expect("store/file" in problems(doctor(fleet, "--store", damaged)), "another file is none of ours")
    expect("no problems" in fleet.ablate("doctor", check=False).stdout or problems(doctor(fleet)), "for people it is a table")


def main():
    with Fleet("watching") as fleet:
        fleet.start_scheduler("--log-format", "json")
        started = lines_of(fleet.home / "scheduler.log")[0]
        url = started["dashboard"]
        fleet.environment["ABLATE_LOG_FORMAT"] = "json"
        fleet.start_worker("first", "--slots", 2, "--allow-commands", "--trainer", "/bin/false")
        (fleet.home / "watched.yaml").write_text(SWEEP)
        fleet.ablate("submit", fleet.home / "watched.yaml")
        check_metrics(fleet, url)
        check_logs(fleet)
        status, text = get(url, "healthz")
        expect(status == 200 and json.loads(text)["status"] == "ok", "the scheduler is healthy")
        report = doctor(fleet)
        expect(not any(check.startswith(("scheduler/", "store/")) for check in problems(report)), "and the doctor sees that")
        said = {check["check"]: check["message"] for check in report["checks"] if check["area"] == "scheduler"}
        expect("1 worker connected" in said["workers"] and report["version"] in said["version"], "with its worker and version")

        moved = fleet.home / "moved.db"
        fleet.store.rename(moved)
        fleet.until(lambda: get(url, "healthz")[0] == 503, "a results file that is gone makes it unhealthy")
        health = json.loads(get(url, "healthz")[1])
        expect(health["reasons"][0]["check"] == "store" and "was deleted" in health["reasons"][0]["message"], "which says why")
        expect(samples(url)["ablate_store_writable"] == 0, "as do its figures")
        expect("was deleted" in problems(doctor(fleet))["scheduler/health"], "and the doctor")
        moved.rename(fleet.store)
        fleet.until(lambda: get(url, "healthz")[0] == 200, "it is well again when the file is back")

        fleet.stop("first")
        fleet.stop("scheduler")
        check_doctor_alone(fleet)
        check_up(fleet)
        wrong = subprocess.run([str(shutil.which("env")), "ABLATE_LOG_FORMAT=yaml", os.environ["ABLATE_BIN"] + "/ablate-scheduler", "--store",
                                str(fleet.home / "none.db")], capture_output=True, text=True, timeout=60)
        expect(wrong.returncode == 2 and "yaml" in wrong.stderr and wrong.stderr.count("\n") == 1, f"a format that there is not: {wrong.stderr.strip()}")


if __name__ == "__main__":
    main()
