# SPDX-License-Identifier: Apache-2.0
"""A Slurm of two nodes on this machine and a scheduler with TLS and tokens, from no worker to finished sweeps: workers come while trials
wait and go when nothing does; a node goes down under a run; scheduler and slurmctld are started again while pilots run. Needs root,
slurmctld, slurmd and munge."""
import re
import stat
import time

from access import free_port
from fleet import BIN, Fleet, say, skip
from private_slurm import Slurm, why_not

PROGRAM = """
import json, sys, time
time.sleep(float(sys.argv[2]))
print(json.dumps({"event": "metric", "step": 1, "values": {"acc": int(sys.argv[1])}}), flush=True)
"""

TOKEN = re.compile("abl_[0-9a-f]{12}_")

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
  cpu:
    launcher: slurm
    workers: {{max: 2}}
    backlog: 2
    time_limit: 1h
    idle_timeout: 3s
    cool_down: 5s
    cpus: 2
    slots: 2
    min_utilisation: 0
    allow_commands: true
    program: {program}
    home: {home}/pilots
    worker_arguments: [--trainer, {home}/none]
  brief:
    launcher: slurm
    workers: 1
    time_limit: 60s
    idle_timeout: 3s
    cool_down: 5s
    cpus: 2
    slots: 1
    min_utilisation: 0
    allow_commands: true
    program: {program}
    home: {home}/pilots
    worker_arguments: [--trainer, {home}/none]
"""

def submit(fleet, name, rows, seconds, queue="cpu"):
    file = fleet.home / f"{name}.yaml"
    file.write_text(SWEEP.format(name=name, home=fleet.home, rows=list(range(rows)), seconds=seconds, queue=queue))
    fleet.ablate("submit", file)


def states(fleet, sweep):
    return [trial["state"] for trial in fleet.trials(sweep)]


def completed(fleet, sweep):
    return lambda: all(state.endswith("COMPLETED") for state in states(fleet, sweep))


def pilots(fleet, of="cpu"):
    return [pilot for queue in fleet.json("fleet").get("queues", []) for pilot in queue.get("pilots", []) if queue["name"] == of]


def passes(fleet):
    return sorted(file.name for file in fleet.home.glob("pilots/.join/*"))


def events(fleet):
    return [event.get("text", "") for event in fleet.json("fleet").get("events", [])]


def looked_at(fleet):
    status = fleet.json("fleet")
    return not status.get("trouble") and status["queues"][0]["why"] != "it was not looked at yet"


def restarted(fleet, argv):
    fleet.stop("scheduler")
    fleet.start_scheduler(*argv)


def main():
    if why := why_not():
        skip(why)
    with Fleet("slurm") as fleet, Slurm(fleet) as slurm:
        (fleet.home / "program.py").write_text(PROGRAM)
        fleet_file = fleet.home / "fleet.yaml"
        trainer = fleet.home / "none"
        trainer.write_text("#!/bin/sh\nexit 1\n")
        trainer.chmod(0o755)
        address = f"127.0.0.1:{free_port()}"
        fleet.ablate("init-fleet", "--name", "gpu-head", "--store", fleet.store)
        fleet_file.write_text(FLEET.format(scheduler=address, program=BIN / "ablate-worker", home=fleet.home))
        options = ("--fleet", fleet_file, "--listen", address, "--tls-certificate", fleet.home / "fleet" / "server.crt",
                   "--tls-key", fleet.home / "fleet" / "server.key", "--fleet-list-ms", 1000)
        fleet.start_scheduler(*options)
        others = slurm.run("sbatch", "--parsable", "--chdir=/", "--output=/dev/null", "--job-name=ablate-of-others-cpu", "--hold", "--wrap=sleep 1").stdout.strip()

        say("from no worker to a finished sweep")
        begin = time.monotonic()
        submit(fleet, "first", 6, 1)
        fleet.until(lambda: any("COMPLETED" in state for state in states(fleet, "first")), "a trial has completed")
        print(f"   the first trial was completed {time.monotonic() - begin:.1f} s after submit", flush=True)
        fleet.until(completed(fleet, "first"), "the sweep is finished")
        assert any("trials wait for its workers" in text for text in events(fleet)), events(fleet)

        fleet.until(lambda: passes(fleet) == ["ca.crt"], "no join token lies about once its worker has joined")
        secrets = [file.read_text() for file in fleet.home.glob("pilots/cpu-*/token")]
        assert secrets and all(TOKEN.match(secret) for secret in secrets) and all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in fleet.home.glob("pilots/cpu-*/token"))
        shown = slurm.run("scontrol", "show", "job", "-dd").stdout + slurm.run("ps", "-eo", "args").stdout
        written = [file.read_text(errors="replace") for file in [*fleet.home.glob("*.log"), *fleet.home.glob("*.sh"), *fleet.home.glob("*.json")]]
        assert not any(TOKEN.search(text) for text in [shown, *written]), "a token is where others read it"

        say("workers go when nothing waits")
        fleet.until(lambda: not pilots(fleet), "no pilot is left")
        assert any("nothing ran there for 3 s" in text for text in events(fleet)), events(fleet)

        say("a node goes down under a run, slurmctld and scheduler are started again")
        submit(fleet, "second", 4, 12)
        running = fleet.until(lambda: [pilot for pilot in pilots(fleet) if pilot.get("busy")], "a trial runs")
        down = running[0]
        slurm.run("scontrol", "update", f"nodename={down['machine']}", "state=down", "reason=test")
        fleet.until(lambda: down["id"] not in [pilot["id"] for pilot in pilots(fleet)], "its pilot is gone")
        slurm.run("scontrol", "update", f"nodename={down['machine']}", "state=resume")
        slurm.stop("slurmctld")
        fleet.until(lambda: fleet.json("fleet").get("trouble"), "the scheduler says that Slurm does not answer")
        restarted(fleet, options)
        slurm.start("slurmctld", "-D", "-f", slurm.conf)
        fleet.until(lambda: looked_at(fleet), "Slurm answers again")
        fleet.until(completed(fleet, "second"), "the sweep is finished")
        assert len(pilots(fleet)) <= 2, pilots(fleet)

        say("a paused queue gets nothing, also after a restart, until a person resumes it")
        fleet.until(lambda: not pilots(fleet), "no pilot is left")
        submit(fleet, "too-long", 1, 300, "brief")  # its pilot has a minute, the least that Slurm counts
        fleet.until(lambda: any(pilot.get("busy") for pilot in pilots(fleet, "brief")), "a trial runs that takes too long")
        fleet.ablate("fleet", "pause", "cpu", "--reason", "maintenance")
        restarted(fleet, options)
        submit(fleet, "third", 2, 1)
        fleet.until(lambda: "paused: maintenance" in fleet.json("fleet")["queues"][0]["why"], "it says so")
        assert not pilots(fleet)
        fleet.ablate("fleet", "resume", "cpu")
        fleet.until(completed(fleet, "third"), "the sweep is finished")

        say("a time limit that is too short for a trial")
        fleet.until(lambda: "takes longer than its workers have" in fleet.json("fleet")["queues"][1]["why"], "the scheduler says so")
        fleet.until(lambda: not pilots(fleet, "brief"), "its pilot is gone and nobody asks for another")
        log = next(fleet.home.glob("pilots/brief-*/worker.log")).read_text()
        assert "its time is nearly over: runs write a checkpoint" in log, log
        trial = fleet.trials("too-long")[0]
        assert trial["state"] == "TRIAL_STATE_QUEUED" and trial["attempt"] == 1, trial
        fleet.ablate("cancel", "too-long")

        assert [job for job in slurm.jobs() if job[0] == others], "a job of others was ended"
        fleet.until(lambda: not pilots(fleet), "no pilot is left")
        tokens = lambda: [token for token in fleet.json("token", "ls")["tokens"] if token.get("made_by") != "init-fleet"]
        assert len(tokens()) >= 4, tokens()
        fleet.until(lambda: all(token["why_not"] for token in tokens()), "the tokens of ended pilots are revoked", 60)
        say("done")


main()
